"""The facts of ``scenarios/cascades.py``."""

from typing import Any

from .differing import CASCADE, Differs

_LEFT = Differs(["cancelled", "cancelled"], ["cancelled", "pending"], CASCADE)

FACTS: dict[str, dict[str, Any]] = {
    "cascades": {
        "expired": _LEFT,
        "asked to stop": _LEFT,
        "revoked": _LEFT,
        "completed": ["complete", True],
        "dependents": True,
        "after completed ones": "complete",
        "whole graph": True,
        "starts with the job": True,
    },
}
