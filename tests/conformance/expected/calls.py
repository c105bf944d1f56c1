"""The facts of ``scenarios/calls.py``."""

from typing import Any

from .differing import MODULE, NAMED, OWN, REFUSED, TASK, TWINS, Differs

_WITHOUT = [
    "purge",
    "update_progress",
    "get_setting",
    "set_setting",
    "delete_setting",
    "list_settings",
    "set_setting_if",
    "migrate",
    "min_contract",
    "set_min_contract",
    "set_queue_rate_limit",
    "set_queue_concurrency",
]

FACTS: dict[str, dict[str, Any]] = {
    "async_twins": {
        "same answer": [],
        "not there": [],
        "nor there": Differs([], _WITHOUT, TWINS),
        "what is enqueued is called": Differs("task", "task_name", TASK),
        "enqueued": 3,
        "result": 1,
        "cancelled": False,
        "in order": ["ok", "ok"],
    },
    "default_arguments": {
        "list_jobs": [50, 0],
        "list_jobs_filtered": [50, 0],
        "list_jobs_after": [50, None],
        "list_archived": [50, 0],
        "dead_letters": [10, 0],
        "dead_letters_after": [10, None],
        "metrics": [None, 3_600],
        "metrics_timeseries": [None, 3_600, 60],
        "query_logs": [None, None, 3_600, 100],
        "purge_completed": [86_400],
        "purge_dead": [86_400],
        "archive": [86_400],
        "pause": ["default"],
        "resume": ["default"],
        "result": [30.0, 0.05, 0.5],
        "purge without a name": "TypeError",
    },
    "names_and_defaults": {
        "unknown name": [7, 60_000, 2, "default"],
        "plain by name": [7, 60_000, 2, "default"],
        "own by name": Differs([1, 60_000, 9, "mail"], [7, 60_000, 2, "default"], NAMED),
        "plain": Differs([7, 60_000, 2, "default"], [3, 300_000, 0, "default"], OWN),
        "empty name": Differs("ValueError", None, REFUSED),
        "nobody knows it": Differs("flexiq_django.exceptions.UnknownTaskError", "KeyError", MODULE),
        "registered again": [1, 2],
        "called in place": 3,
    },
    "lists_of_options": {
        "metadata": ["a", None],
        "notes": ['{"n":1}', None],
        "keys": ["x", None],
        "priority": [4, 4],
        "later": True,
        "ids": [True, True],
        "in order of time": True,
        "notes: key of 65": "ValueError",
        "notes: empty key": "ValueError",
        "notes: 4,097 bytes": "ValueError",
        "notes: not finite": "ValueError",
        "notes: an object": "ValueError",
        "notes: key of 64": None,
    },
}
