"""The chores of this process, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flexiq_django.core.records import Settlement
from flexiq_django.scheduler import chores
from flexiq_django.scheduler.chores import Call, Enqueued
from flexiq_django.scheduler.leader import TTL_SECONDS, Leader
from flexiq_django.scheduler.loop import Chore, ChoreLoop
from flexiq_django.scheduler.pauses import SHORTEST
from flexiq_django.scheduler.periodic import Periodic
from flexiq_django.scheduler.sweeping import Archival, RetentionSweep
from flexiq_django.scheduler.watching import FleetWatch, LaneWatch
from flexiq_django.store import election, link
from flexiq_django.worker.catalogue import Catalogue
from flexiq_django.worker.connections import Keeper
from flexiq_django.worker.options import WorkerOptions
from flexiq_django.worker.readiness import watch_contract

#: Seconds for which giving up leadership is tried while others write.
RESIGN_SECONDS = 1.0


def build_chores(
    options: WorkerOptions,
    keeper: Keeper,
    catalogue: Catalogue,
    *,
    holder: str,
    on_ready: Callable[[int], None],
    on_reaped: Callable[[Sequence[Settlement]], None],
    on_refused: Callable[[], None],
) -> ChoreLoop:
    """The loop with every chore there is."""
    scope, call = options.scope, keeper.call

    def ready(count: int) -> None:
        on_ready(count)
        if options.listen:
            call(lambda: link.notify(scope))  # the other workers

    def told(settlements: Sequence[Settlement]) -> None:
        if settlements:
            on_reaped(settlements)
            ready(len(settlements))

    def chore(name: str, run: Callable[[], float], **options: Any) -> Chore:
        return Chore(name=name, run=run, **options)

    net = chores.DependencyNet(scope, call, ready)
    catching = chore("dependencies", net.run)

    def on_passed_over() -> None:
        net.walk_again()
        catching.run_within(SHORTEST)

    reaper = chores.Reaper(
        scope,
        call,
        catalogue.lost,
        on_settled=told,
        on_passed_over=on_passed_over,
        seconds=min(chores.REAP_SECONDS, options.lock_grace / 2),
        auto_retry=options.auto_retry,
    )
    return ChoreLoop(
        _leader(options, call, holder),
        [
            chore("promote", chores.Promotion(scope, call, ready).run, is_nudged=True),
            chore("periodic", Periodic(scope, call, catalogue.build, ready).run),
            chore("reap", reaper.run),
            chore("expire", chores.Expiry(scope, call, ready, on_passed_over).run),
            catching,
            chore("sessions", chores.SessionNet(scope, call, ready).run),
            *_retrying_dead(options, call, catalogue, ready),
            *_keeping_small(options, call),
            chore("workers", lambda: chores.forget_workers(scope, call)),
            chore("lanes", LaneWatch(scope, call).run),
            chore("fleet", FleetWatch(scope, call).run, by_leader=False),
            chore("declare", lambda: catalogue.declare_schedules(call), by_leader=False),
            chore("contract", lambda: watch_contract(scope, call, on_refused), by_leader=False),
        ],
        on_end=keeper.close,
    )


def _retrying_dead(
    options: WorkerOptions, call: Call, catalogue: Catalogue, ready: Enqueued
) -> Iterator[Chore]:
    policy = options.auto_retry
    if policy is not None:
        seconds = min(chores.RETRY_SECONDS, max(1.0, policy.delay_ms / 1000))
        retries = chores.DeadLetterRetries(
            options.scope, call, policy.most, catalogue.limited, ready, seconds
        )
        yield Chore(name="dead letters", run=retries.run)


def _leader(options: WorkerOptions, call: Call, holder: str) -> Leader:
    # A lost job should not wait much longer for a leader than for the end of its lease.
    scope, ttl = options.scope, min(TTL_SECONDS, options.lock_grace)
    return Leader(
        lambda: call(lambda: election.acquire(scope, "leader", holder, ttl_ms=round(ttl * 1000))),
        # Not by the keeper, which gives up at once when the worker stops.
        lambda: link.call(
            scope, lambda: election.resign(scope, "leader", holder), patience=RESIGN_SECONDS
        ),
        ttl=ttl,
    )


def _keeping_small(options: WorkerOptions, call: Call) -> Iterator[Chore]:
    if options.retention is not None:
        sweep = RetentionSweep(options.scope, call, options.retention)
        yield Chore(name="retention", run=sweep.run)
    if options.archive_after is not None:
        archival = Archival(options.scope, call, round(options.archive_after * 1000))
        yield Chore(name="archive", run=archival.run)
