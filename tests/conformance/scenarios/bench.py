"""What the scenarios share, and what each package brings to them."""

import threading
from collections.abc import Callable
from typing import Any, Protocol

Facts = dict[str, Any]
UNKNOWN = "0197b0a0-0000-7000-8000-000000000000"
PAUSE = threading.Event()
_BUILTIN = (ValueError, KeyError, OverflowError, TypeError, TimeoutError, RuntimeError)


class Bench(Protocol):
    """What a package brings to the scenarios."""

    #: The class of retention windows.
    retention: Any

    def make(self, *, probe: Callable[[Any], Any] | None = None, **options: Any) -> Any:
        """A queue with the tasks ``ok`` (returns 1) and ``bad`` (raises a ValueError).

        ``probe`` is what the task ``probe`` does with the job it runs in; retried at once, twice.
        With ``workers=1`` one job runs at a time.
        """

    def run(self, queue: Any) -> None:
        """Run every job that can run."""


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
