"""Which job a log line is about: a filter and a JSON formatter for your ``LOGGING``.

Both can be named there: this module needs no models, and no settings.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from flexiq_django.api.context import current_attempt
from flexiq_django.core.records import ClaimedJob

#: The attributes of a record, by their keys in a JSON line.
KEYS = {
    "job_id": "job_id",
    "task": "task_name",
    "queue": "queue",
    "attempt": "attempt",
    "worker": "worker_id",
}

_worker_id: str | None = None


def set_worker(worker_id: str | None) -> None:
    """From now on this process is that worker; ``None``: a worker no more."""
    global _worker_id
    _worker_id = worker_id


def about(job: ClaimedJob) -> dict[str, Any]:
    """The ``extra`` of a log line about a job."""
    return {
        "job_id": str(job.id),
        "task_name": job.task_name,
        "queue": job.queue,
        "attempt": job.attempt,
        "worker_id": _worker_id,
    }


class JobContextFilter(logging.Filter):
    """Gives every record ``job_id``, ``task_name``, ``queue``, ``attempt`` and ``worker_id``.

    Put it on a handler: then lines of your own and of other packages have them too. A line logged
    inside a task's body is about its job, one of the worker about the job it names; elsewhere the
    five are ``None``. What a record already has stays. Lets every record pass.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add what is missing."""
        attempt = current_attempt()
        known = {"worker_id": _worker_id} if attempt is None else about(attempt.job)
        for name in KEYS.values():
            if not hasattr(record, name):
                setattr(record, name, known.get(name))
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object a line, always with the same keys.

    ``time`` (UTC, ISO 8601), ``level``, ``logger``, ``message``, ``job_id``, ``task``, ``queue``,
    ``attempt``, ``worker`` and ``exception`` (the traceback as text). What is not known is
    ``null``; without :class:`JobContextFilter` on the handler that is the job of most lines.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **{key: getattr(record, name, None) for key, name in KEYS.items()},
            "exception": self.formatException(record.exc_info) if record.exc_info else None,
        }
        return json.dumps(line, default=str)


class StderrHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """What a worker logs to where the project has not configured its logger."""


def log_to_stderr(verbosity: int, form: str | None = None) -> None:
    """Show the worker's log in a project that has not configured logging for it.

    ``form`` is ``text`` or ``json``; ``None`` means text. Where there are handlers of the
    project's, they stay as they are, and a ``form`` that was asked for is answered by a warning.
    """
    logger = logging.getLogger("flexiq_django")
    for handler in [each for each in logger.handlers if isinstance(each, StderrHandler)]:
        logger.removeHandler(handler)  # of an earlier worker in this process
    if not logger.hasHandlers():
        logger.addHandler(_stderr_handler(form))
    elif form is not None:
        logger.warning("--log-format changes nothing: LOGGING has handlers for flexiq_django")
    if logger.level == logging.NOTSET:
        levels = {0: logging.ERROR, 1: logging.INFO}
        logger.setLevel(levels.get(verbosity, logging.DEBUG))


def _stderr_handler(form: str | None) -> StderrHandler:
    handler = StderrHandler()
    handler.addFilter(JobContextFilter())
    handler.setFormatter(
        JsonFormatter()
        if form == "json"
        else logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    )
    return handler
