"""The ways to run bodies. Each stands in a file of its own; ``base.py`` says what they share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from flexiq_django.core.records import ClaimedJob
from flexiq_django.worker.executors.coroutines import CoroutineExecutor
from flexiq_django.worker.executors.processes import ProcessExecutor, Target
from flexiq_django.worker.executors.threads import ThreadExecutor

#: Names of the executors, and how many jobs each runs at a time unless told.
EXECUTORS: dict[str, Callable[[int], int]] = {
    "threads": lambda _cores: 8,
    "processes": lambda cores: cores,
    "coroutines": lambda _cores: 100,
}


def make_executor(
    name: str,
    concurrency: int,
    *,
    run: Callable[[ClaimedJob], None],
    run_async: Callable[[ClaimedJob], Awaitable[None]],
    on_low: Callable[[], None],
    child: tuple[Target, tuple[Any, ...]],
    max_jobs: int | None = None,
    max_rss: int | None = None,
) -> ThreadExecutor | ProcessExecutor | CoroutineExecutor:
    """An executor by its name.

    ``child`` is what a child process does, and with what; ``max_jobs`` and ``max_rss`` say when one
    is replaced. Both matter to child processes only.
    """
    if name == "processes":
        target, arguments = child
        return ProcessExecutor(
            concurrency,
            run,
            on_low,
            target=target,
            arguments=arguments,
            max_jobs=max_jobs,
            max_rss=max_rss,
        )
    if name == "coroutines":
        return CoroutineExecutor(concurrency, run_async, on_low)
    return ThreadExecutor(concurrency, run, on_low)
