"""The facts of ``scenarios/across.py``."""

from typing import Any

from .differing import SCOPE, Differs

FACTS: dict[str, dict[str, Any]] = {
    "across_namespaces": {
        "another job of the key": True,
        "paused": [],
        "settings": "a",
        "history": Differs(0, 1, SCOPE),
        "preview": Differs(0, 2, SCOPE),
        "cancel": False,
        "stop": False,
        "requeue": False,
        "every namespace": True,
        "of a named one": 4,
        "seen without a name": Differs(False, True, SCOPE),
        "counted without a name": Differs(0, 2, SCOPE),
        "purge": Differs(0, 1, SCOPE),
        "purge completed": Differs(0, 2, SCOPE),
        "revoke": Differs(0, 1, SCOPE),
        "left": Differs(
            ["complete", "complete", "pending", "pending"],
            [False, False, "cancelled", "cancelled"],
            SCOPE,
        ),
    },
}
