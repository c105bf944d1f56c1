"""The facts of ``scenarios/keeping.py``."""

from typing import Any

from .differing import ANY, MIGRATE, Differs

FACTS: dict[str, dict[str, Any]] = {
    "retention": {
        "nothing": [
            True,
            True,
            {
                "archived_jobs": 604800000,
                "dead_letter": 2592000000,
                "task_logs": 259200000,
                "task_metrics": 604800000,
                "job_errors": 604800000,
            },
        ],
        "empty": [
            False,
            False,
            {
                "archived_jobs": None,
                "dead_letter": None,
                "task_logs": None,
                "task_metrics": None,
                "job_errors": None,
            },
        ],
        "one": [
            True,
            False,
            {
                "archived_jobs": None,
                "dead_letter": None,
                "task_logs": 10000,
                "task_metrics": None,
                "job_errors": None,
            },
        ],
        "legacy": [
            True,
            False,
            {
                "archived_jobs": 3600000,
                "dead_letter": 3600000,
                "task_logs": 3600000,
                "task_metrics": 3600000,
                "job_errors": 3600000,
            },
        ],
        "both": [
            True,
            False,
            {
                "archived_jobs": None,
                "dead_letter": None,
                "task_logs": 10000,
                "task_metrics": None,
                "job_errors": None,
            },
        ],
        "candidate": [True, False, 0],
        "counts": ["archived_jobs", "dead_letter", "job_errors", "task_logs", "task_metrics"],
        "before a sweep": None,
        "negative": "ValueError",
        "unknown field": "TypeError",
        "negative legacy": "ValueError",
    },
    "settings": {
        "missing": None,
        "delete missing": False,
        "set": None,
        "empty value": "",
        "not a text": "TypeError",
        "must be unset": False,
        "stale": False,
        "current": True,
        "unset": True,
        "listed": {"2": "b"},
        "delete": True,
    },
    "contract": {
        "level": 2,
        "same": None,
        "level 0": "ValueError",
        "level 3": "ValueError",
        "migrate": Differs(
            {"applied": [], "workflow_applied": [], "archived_jobs": 0, "schemaless": False},
            ANY,
            MIGRATE,
        ),
    },
    "namespaces": {
        "get": True,
        "list": [],
        "stats": 0,
        "errors": [],
        "dead": [],
        "retry": "RuntimeError",
        "delete": False,
        "replay": "ValueError",
        "graph": {"nodes": [], "edges": []},
        "parent": "RuntimeError",
    },
}
