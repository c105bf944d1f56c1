"""Signals. Receivers run after the commit; one that raises is logged and never fails a job.

=================  =============================================================================
signal             arguments
=================  =============================================================================
``job_enqueued``   ``job_ids`` (list of str), ``namespace``, ``using``
``job_started``    ``job`` (the claimed job), ``worker_id``
``job_settled``    ``job_id`` (str), ``task_name``, ``status``, ``error``, ``worker_id``,
                   ``namespace``, ``using``
``worker_started`` ``worker_id``, ``namespace``
``worker_stopped`` ``worker_id``, ``namespace``
=================  =============================================================================
"""

from __future__ import annotations

import logging
from typing import Any

from django.dispatch import Signal

logger = logging.getLogger(__name__)

job_enqueued = Signal()
job_started = Signal()
job_settled = Signal()
worker_started = Signal()
worker_stopped = Signal()


def send(signal: Signal, **arguments: Any) -> None:
    """Send a signal to whoever listens; log a receiver that raises."""
    if not signal.receivers:
        return
    for receiver, answer in signal.send_robust(sender=None, **arguments):
        if isinstance(answer, Exception):
            logger.error("signal receiver %r failed", receiver, exc_info=answer)
