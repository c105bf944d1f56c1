"""The facts of ``scenarios/dead_letters.py``."""

from typing import Any

from .differing import METADATA, PURGE, REPLAY_ERROR, Differs

FACTS: dict[str, dict[str, Any]] = {
    "dead_letters": {
        "keys": [
            "dlq_retry_count",
            "error",
            "failed_at",
            "id",
            "metadata",
            "original_job_id",
            "queue",
            "retry_count",
            "task_name",
        ],
        "ids differ": True,
        "retry by the job's id": "RuntimeError",
        "retry unknown": "RuntimeError",
        "delete unknown": False,
        "delete by the job's id": False,
        "limit -1": "ValueError",
        "kept": ["bad", 7, 0],
        "metadata": True,
        "retried twice": "RuntimeError",
        "letter gone": [],
        "no replay": [],
        "again": 1,
        "not old enough": 0,
        "purged": 1,
        "job behind it": Differs(True, False, PURGE),
        "age of a word": "TypeError",
    },
    "replays": {
        "kept": ["bad", 0, '{"a":1}'],
        "metadata kept": Differs(True, False, METADATA),
        "unique_key": None,
        "original": "dead",
        "keys": [
            "id",
            "original_error",
            "original_job_id",
            "replay_error",
            "replay_job_id",
            "replayed_at",
        ],
        "ids": [True, True],
        "original error": True,
        "of a pending job": True,
        "unknown": "ValueError",
        "history of unknown": [],
        "history of the copy": [],
        "replay error filled": Differs(True, False, REPLAY_ERROR),
    },
}
