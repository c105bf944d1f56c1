"""How far an import is: worked out from its rows and its jobs, stored nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airports.models import Import, rows_done
from flexiq_django import JobResult, JobStatus, queue

_FAILED = {JobStatus.DEAD.value, JobStatus.FAILED.value, JobStatus.CANCELLED.value}
_CORRUPTED_ATTEMPTS = 3


class Stage(StrEnum):
    """Where an import stands."""

    WAITING = "waiting for a worker"
    SPLITTING = "splitting the file"
    IMPORTING = "importing"
    DRAWING = "drawing the report"
    MAILING = "sending the mail"
    DONE = "done"
    INCOMPLETE = "done, with gaps"
    FAILED = "failed"


ENDED = frozenset({Stage.DONE, Stage.INCOMPLETE, Stage.FAILED})


@dataclass(frozen=True, kw_only=True)
class CorruptedCopy:
    """What has become of the chunk that was corrupted on purpose."""

    text: str
    has_ended: bool


@dataclass(frozen=True, kw_only=True)
class Progress:
    """An import at one moment."""

    stage: Stage
    rows: int
    total_rows: int
    chunks: int
    total_chunks: int
    error: str = ""
    corrupted: CorruptedCopy | None = None

    @property
    def percent(self) -> int:
        """The share of the rows that is in the table, rounded down."""
        return self.rows * 100 // self.total_rows if self.total_rows else 0

    @property
    def has_ended(self) -> bool:
        """Nothing more will happen by itself."""
        return self.stage in ENDED and (self.corrupted is None or self.corrupted.has_ended)

    @property
    def text(self) -> str:
        """One line for a person."""
        if not self.total_rows:
            return "not counted yet"
        return (
            f"{self.rows:,} of {self.total_rows:,} rows,"
            f" {self.chunks:,} of {self.total_chunks:,} chunks"
        )


def progress_of(run: Import) -> Progress:
    """Look now."""
    rows, chunks, total_chunks = rows_done(run)
    stage, error = _stage(run, complete=bool(total_chunks) and chunks == total_chunks)
    return Progress(
        stage=stage,
        rows=rows,
        total_rows=run.total_rows or 0,
        chunks=chunks,
        total_chunks=total_chunks,
        error=error,
        corrupted=_corrupted(run) if run.has_corrupted_copy else None,
    )


def error_line(job: JobResult | None) -> str:
    """What a job failed with, in one line; empty if it did not."""
    return (job.to_dict()["error"] or "") if job is not None else ""


def _stage(run: Import, *, complete: bool) -> tuple[Stage, str]:
    if run.mailed_at is not None:
        return (Stage.DONE if complete else Stage.INCOMPLETE), ""
    if not run.report_job:
        return _stage_of_job(run.split_job, before=Stage.WAITING, during=Stage.SPLITTING)
    if not run.report:
        before = Stage.DRAWING if complete else Stage.IMPORTING
        return _stage_of_job(run.report_job, before=before, during=Stage.DRAWING)
    return _stage_of_job(run.mail_job, before=Stage.MAILING, during=Stage.MAILING)


def _stage_of_job(job_id: str, *, before: Stage, during: Stage) -> tuple[Stage, str]:
    job = queue.get_job(job_id)
    if job is None:
        return Stage.FAILED, "The job was deleted."
    if job.status in _FAILED:
        return Stage.FAILED, error_line(job)
    return (before if job.status == JobStatus.PENDING else during), ""


def _corrupted(run: Import) -> CorruptedCopy:
    job = queue.get_job(run.corrupted_job) if run.corrupted_job else None
    if job is None:
        # Not enqueued before the file is split, and never if that fails: nothing to wait for.
        return CorruptedCopy(text="not tried yet", has_ended=True)
    if job.status in _FAILED:
        return CorruptedCopy(text=f"dead letter: {error_line(job)}", has_ended=True)
    failed = job.retry_count
    text = f"attempt {failed} of {_CORRUPTED_ATTEMPTS} failed" if failed else "not tried yet"
    return CorruptedCopy(text=text, has_ended=False)
