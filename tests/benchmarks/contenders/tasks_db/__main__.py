"""django-tasks-db as a contender."""

import contextlib
import os
import sys
from collections.abc import Iterator

from tests.benchmarks.contenders.base import Contender, Send, main


class TasksDb(Contender):
    """It has no bulk enqueue: one real row is copied by SQL."""

    def __init__(self) -> None:
        super().__init__()
        os.environ["DJANGO_SETTINGS_MODULE"] = "tests.benchmarks.contenders.tasks_db.settings"

    def prepare(self) -> None:
        self._set_up()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)

    def preload(self, count: int) -> None:
        self._set_up()
        from django.db import connections
        from django_tasks_db.models import DBTaskResult

        from tests.benchmarks.contenders.tasks_db.tasks import noop

        noop.enqueue()
        table = DBTaskResult._meta.db_table
        copied = ", ".join(f.column for f in DBTaskResult._meta.concrete_fields if f.name != "id")
        with connections["default"].cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {table} (id, {copied}) SELECT gen_random_uuid(), {copied}"
                f" FROM {table}, generate_series(2, %s)",
                [count],
            )

    def work(self) -> None:
        os.execv(sys.executable, [sys.executable, "-m", "django", "db_worker"])  # noqa: S606

    @contextlib.contextmanager
    def sender(self) -> Iterator[Send]:
        self._set_up()
        from tests.benchmarks.contenders.tasks_db.tasks import record

        yield record.enqueue

    def _set_up(self) -> None:
        import django

        django.setup()


if __name__ == "__main__":
    main(TasksDb())
