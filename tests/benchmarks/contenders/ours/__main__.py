"""flexiq_django as a contender."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator

from tests.benchmarks.contenders.base import Contender, Send, chunks, main


class Ours(Contender):
    """Both databases. The variant, if any, is an executor that gets a bit of everything to do."""

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
        from tests.benchmarks.contenders.ours.tasks import MIXED, noop

        began = time.monotonic()
        for size in chunks(count):
            if not self.variant:
                queue.enqueue_many(noop, [()] * size)
            for number, task in enumerate(MIXED if self.variant else ()):
                queue.enqueue_many(task, [(each,) for each in range(number, size, len(MIXED))])
        return time.monotonic() - began

    def work(self) -> None:
        command = [sys.executable, "-m", "django", "flexiq_worker"]
        if self.variant not in ("", "threads"):
            command += ["--executor", self.variant]
        # The real command as its own process, not a call of it in this one.
        os.execv(sys.executable, command)  # noqa: S606

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
