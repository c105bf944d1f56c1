"""Send the framework's signals. A receiver that raises is logged and fails nothing."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.dispatch import Signal

from flexiq_django import signals
from flexiq_django.api.context import current_attempt
from flexiq_django.backend import finding, results
from flexiq_django.backend.framework import AnyResult, task_backends, task_finished
from flexiq_django.core.status import TERMINAL
from flexiq_django.store.scope import Scope

#: More attempts than a worker ever has between the end of a body and its settlement.
_MOST = 2000

#: What bodies of this process failed with, until their attempts are settled: receivers of
#: ``task_finished`` that log, or tell an error tracker, ask for the exception being handled.
_errors: OrderedDict[str, BaseException] = OrderedDict()


def tell(signal: Signal, result: AnyResult) -> None:
    """Send a signal of the framework; the sender is the class of the backend."""
    signal.send_robust(sender=type(task_backends[result.backend]), task_result=result)


@contextlib.contextmanager
def remembering(job_id: str) -> Iterator[None]:
    """Around a body: keep what it raises for the receivers of ``task_finished``."""
    _errors.pop(job_id, None)  # of an earlier attempt that never came to be settled
    try:
        yield
    except BaseException as error:
        attempt = current_attempt()
        # Once the time of an attempt is up, its end has been told without what it raises later.
        if attempt is not None and attempt.is_settled_here and not attempt.is_over:
            _errors[job_id] = error
            while len(_errors) > _MOST:
                _errors.popitem(last=False)
        raise


def listen() -> None:
    """From now on tell of the end of the framework's tasks. Calling it again changes nothing."""
    signals.job_settled.connect(_on_settled, dispatch_uid="flexiq_django.backend")


def _on_settled(
    *, job_id: str, task_name: str, status: str, namespace: str, using: str, **_: Any
) -> None:
    error = _errors.pop(job_id, None)
    if status not in TERMINAL or task_name not in finding.known_names:
        return
    result = results.read_result(Scope(using=using, namespace=namespace), UUID(job_id))
    if result is None:  # deleted already
        return
    if error is None:
        tell(task_finished, result)
        return
    try:
        raise error
    except BaseException:
        tell(task_finished, result)
