"""Run what is pending, here and now."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from flexiq_django.api import clock, default
from flexiq_django.api import options as check
from flexiq_django.api.queue import Queue
from flexiq_django.api.result import JobResult
from flexiq_django.api.twins import async_twin
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.testing import moving
from flexiq_django.testing.worker import InlineWorker

#: Called with the queue after each run: how immediate mode goes on with other queues.
followers: list[Callable[[Queue], None]] = []


def run_pending(
    *,
    queue: Queue | None = None,
    until: float | datetime | None = None,
    limit: int | None = None,
    retries: bool = False,
) -> list[JobResult]:
    """Run the jobs that are due, one by one, as a worker would; those that ran, in their order.

    Works inside the transaction of a ``TestCase``, on its connection and in its thread. Jobs that
    the jobs enqueue are run too. A job that fails is settled like any other and leaves a dead
    letter: ``job.result()`` then raises what it failed with. A job that was tried twice is
    in the list twice. What is no ``Exception``, such as ``KeyboardInterrupt`` or the failure that
    ``pytest.fail()`` raises, goes on to the caller once the attempt is settled.

    ``queue`` is the ``Queue`` whose jobs are run, the default one unless given. ``until``, seconds
    from now or a time, also lives through the time up to then: delayed jobs, retries, schedules and
    dead letters that are retried by themselves run in the order in which they are due. ``limit`` is
    the most attempts to run. With ``retries`` a failed job is tried again at once instead of after
    its wait; a dead letter keeps its time. Raises ``InvalidOptionError``.
    """
    if limit is not None:
        check.check_whole("limit", limit, least=1, most=2**31 - 1)
    chosen = default.queue if queue is None else queue
    target = _target(until)
    _ = chosen.scope  # opens the queue
    worker = InlineWorker(chosen, limit=limit, retries=retries)
    journey = moving.journeys[-1] if moving.journeys else None
    if target is None and journey is None:
        worker.work(None)
    else:
        now = moving.read_clock()
        since = now if journey is None else journey.since(chosen.place)
        worker.live(since, target or now, is_there=since >= now)
        if journey is not None:
            journey.reached[chosen.place] = max(since, target or now)
    for follow in tuple(followers):
        follow(chosen)
    return worker.ran


def _target(until: float | datetime | None) -> datetime | None:
    if until is None:
        return None
    if isinstance(until, datetime):
        moment = check.check_moment("until", until)
    else:
        check.check_span("until", until)
        moment = moving.read_clock() + timedelta(seconds=until)
    now = clock.moved_to()
    if moment is not None and now is not None and moment < now:
        raise InvalidOptionError(f"until is {moment}; it is {now} already")
    return moment


arun_pending = async_twin(run_pending)
