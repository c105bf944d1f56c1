"""The facts of ``scenarios/handles.py``."""

from typing import Any

from .differing import ANY, ASKED, EACH, FENCE, REFUSED, UNREADABLE, WORDS, Differs

FACTS: dict[str, dict[str, Any]] = {
    "failed_results": {
        "dead": "MaxRetriesExceededError",
        "errtype": "ValueError",
        "traceback": "ValueError: bad",
        "job": True,
        "raw": True,
        "cancelled": "TaskCancelledError",
        "no error": None,
        "errors": True,
        "shown": [True, True],
        "what is gone stays as it was": "dead",
    },
    "odd_results": {
        "int keys": Differs(["complete", True], ["complete", False], UNREADABLE),
        "others": [True, True, True],
    },
    "streams": {
        "first": None,
        "each": Differs(2, ANY, EACH),
        "lines": [["result", "", "null"], ["result", "", '{"a": [1]}']],
        "no patience": Differs(True, False, REFUSED),
    },
    "log_lines": {
        "a word as level": Differs(None, "Exception", WORDS),
        "oldest first": ["one", "two"],
        "extra": ['{"a": 1}', None],
        "levels": ["critical", "debug", "error", "info", "result", "warning"],
        "by level": ["one"],
        "by a word": Differs(None, "Exception", WORDS),
        "by task": ["one"],
        "of another task": [],
        "at most": 1,
        "none": [],
    },
    "taken_back": {
        "requeue": True,
        "replay": True,
        "end": ["complete", 0, 30, None],
        "result": Differs("new", ANY, FENCE),
        "bodies": 2,
        "errors": [],
    },
    "stops": {
        "the request survives a retry": Differs(
            ["cancelled", 1, [0]], ["cancelled", 1, [0, 1]], ASKED
        ),
        "errors": 1,
        "by itself": ["cancelled", 0, []],
        "failures counted": 1,
    },
}
