"""What the worker asks of an executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from flexiq_django.core.records import ClaimedJob


class Executor(Protocol):
    """Runs claimed jobs, at most ``concurrency`` at a time."""

    concurrency: int
    #: How short the line may become before the executor asks for more.
    low_water: int

    def start(self) -> None:
        """Be ready to run."""

    def submit(self, jobs: Sequence[ClaimedJob]) -> None:
        """Run the jobs in this order as slots become free."""

    def waiting_jobs(self) -> list[ClaimedJob]:
        """The jobs submitted whose body has not begun."""

    def take_back(self) -> list[ClaimedJob]:
        """Hand back the jobs whose body has not begun."""

    def replace_slot(self, job: ClaimedJob) -> None:
        """The body of ``job`` will not end in time: give its slot to others."""

    @property
    def waiting(self) -> int:
        """Jobs submitted whose body has not begun."""

    @property
    def running(self) -> int:
        """Slots in use."""

    def stop(self) -> None:
        """Run nothing more. Bodies that still run are left to themselves."""
