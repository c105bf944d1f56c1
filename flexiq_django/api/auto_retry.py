"""When dead letters are retried by themselves: what the settings and the queues say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from flexiq_django.api import options as check
from flexiq_django.api.queue import Queue
from flexiq_django.api.registry import declared_queues
from flexiq_django.conf import get_settings
from flexiq_django.core.records import AutoRetry
from flexiq_django.store.scope import Scope

Wish = tuple[float | None, int]


def auto_retry_for(scope: Scope) -> AutoRetry | None:
    """What holds in a namespace; ``None``: dead letters wait for a person.

    Where several queues of the namespace say something, the most careful of them counts.
    """
    delay, most = _wishes(scope, declared_queues())[0]
    delay_ms = check.check_seconds("DLQ_AUTO_RETRY_DELAY", delay)
    return AutoRetry(delay_ms, most) if delay_ms is not None and most > 0 else None


def find_doubts(queues: Sequence[Queue]) -> Iterator[tuple[str, str]]:
    """What makes little sense in the settings or the queues, each with what to do."""
    settings = get_settings()
    delay, most, lifetime = (
        settings.DLQ_AUTO_RETRY_DELAY,
        settings.DLQ_AUTO_RETRY_MAX,
        settings.RESULT_TTL,
    )
    if delay is not None and most > 100:
        yield (
            f"A dead letter may be retried {most} times by itself (DLQ_AUTO_RETRY_MAX): a job that"
            " can never succeed is run again and again.",
            "Give a failure that passes more retries of the job itself (max_retries).",
        )
    if delay is not None and lifetime is not None and delay >= lifetime:
        yield (
            f"Dead letters are deleted after {lifetime:g} s (RESULT_TTL), before they would be"
            f" retried after {delay:g} s (DLQ_AUTO_RETRY_DELAY).",
            "Set DLQ_AUTO_RETRY_DELAY below RESULT_TTL.",
        )
    for scope in sorted({queue.place for queue in queues}, key=repr):
        if len(wishes := _wishes(scope, queues)) > 1:
            told = " and ".join(f"{count} times after {after} s" for after, count in wishes)
            yield (
                f"Queues of the namespace {scope.namespace!r} differ in when dead letters are"
                f" retried by themselves: {told}.",
                "Give all of them the same dlq_auto_retry_delay and dlq_auto_retry_max.",
            )


def _wishes(scope: Scope, queues: Sequence[Queue]) -> list[Wish]:
    """What queues of a namespace want, each once, the most careful first; else the settings."""
    settings = get_settings()
    usual: Wish = (settings.DLQ_AUTO_RETRY_DELAY, settings.DLQ_AUTO_RETRY_MAX)
    own = {
        (usual[0] if delay is None else delay, usual[1] if most is None else most)
        for queue in queues
        if queue.place == scope and (said := queue.own_auto_retry) != (None, None)
        for delay, most in [said]
    }
    return sorted(own, key=_boldness) or [usual]


def _boldness(wish: Wish) -> Any:
    delay, most = wish
    return (delay is not None, most, -(delay or 0))
