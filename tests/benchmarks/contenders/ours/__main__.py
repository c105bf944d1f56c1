"""flexiq_django as a contender."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator

from tests.benchmarks.contenders.base import Contender, Send, chunks, main


class Ours(Contender):
    """Both databases."""

    def __init__(self) -> None:
        super().__init__()
        os.environ["DJANGO_SETTINGS_MODULE"] = "tests.benchmarks.contenders.ours.settings"

    def prepare(self) -> None:
        self._set_up()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)

    def preload(self, count: int) -> float:
        self._set_up()
        from flexiq_django import queue
        from tests.benchmarks.contenders.ours.tasks import noop

        began = time.monotonic()
        for size in chunks(count):
            queue.enqueue_many(noop, [()] * size)
        return time.monotonic() - began

    def work(self) -> None:
        # The real command as its own process, not a call of it in this one.
        os.execv(sys.executable, [sys.executable, "-m", "django", "flexiq_worker"])  # noqa: S606

    @contextlib.contextmanager
    def sender(self) -> Iterator[Send]:
        self._set_up()
        from tests.benchmarks.contenders.ours.tasks import record

        yield record.delay

    def _set_up(self) -> None:
        import django

        django.setup()


if __name__ == "__main__":
    main(Ours())
