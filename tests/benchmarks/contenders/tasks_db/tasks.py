"""The tasks."""

from django.tasks import task

from tests.benchmarks.contenders import marks


@task
def noop() -> None:
    """Nothing."""
    marks.began()


@task
def record(number: int) -> None:
    """Note when this began."""
    marks.ran(number)
