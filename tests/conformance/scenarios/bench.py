"""What the scenarios share, and what each package brings to them."""

import threading
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

Facts = dict[str, Any]
UNKNOWN = "0197b0a0-0000-7000-8000-000000000000"
PAUSE = threading.Event()
_BUILTIN = (TypeError, OverflowError, ValueError, KeyError, TimeoutError, RuntimeError)


class Bench(Protocol):
    """What a package brings to the scenarios."""

    #: The class of retention windows, the levels of log lines, the job that code runs in, and what
    #: code raises to end it as cancelled.
    retention: Any
    levels: Any
    current_job: Any
    cancelled: Any
    #: The shortest timeout a job may be given, in seconds.
    shortest: float

    def make(
        self,
        *,
        beside: Any = None,
        twin: Any = None,
        nameless: bool = False,
        probe: Callable[[Any], Any] | None = None,
        workers: int = 2,
        reaps: bool = True,
        **options: Any,
    ) -> Any:
        """A queue with the tasks ``ok`` (returns 1) and ``bad`` (raises a ValueError).

        In a database of its own, else ``beside`` another queue in another namespace (none at all if
        ``nameless``), or as a ``twin`` for the same jobs. ``probe`` is what the task ``probe`` does
        with the job it runs in; retried at once, twice. With ``workers=1`` one job runs at a time.
        Without ``reaps`` nobody looks for jobs that run too long but who runs them.
        """

    def put(self, queue: Any, key: str, text: str) -> None:
        """A text in the settings store, under whatever key."""

    def awaited(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """What a coroutine function answers, called without arguments."""

    def run(
        self, queue: Any, until: Callable[[], object] | None = None, *, stays: bool = False
    ) -> None:
        """Let a worker run every job, or until something is true.

        With ``stays`` some jobs are expected to be left when it has run all it can.
        """


def raises(kind: type[Exception], call: Callable[[], Any]) -> bool | str:
    """Whether a call raises this kind of exception; the name of another that it raises."""
    try:
        call()
    except Exception as error:
        return True if isinstance(error, kind) else type(error).__name__
    return False


def raised(call: Callable[[], Any]) -> str | None:
    """The built-in exception a call raises, by name; ``None`` if it raises nothing."""
    try:
        call()
    except Exception as error:
        return next((kind.__name__ for kind in _BUILTIN if isinstance(error, kind)), "Exception")
    return None


def done(bench: Bench, task: str = "ok", **options: Any) -> tuple[Any, Any]:
    """A queue with one job that has ended."""
    queue = bench.make()
    job = queue.enqueue(task, **options)
    bench.run(queue)
    job.refresh()
    return queue, job
