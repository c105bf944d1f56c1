"""The jobs of an import.

    split_file -> import_chunk (many) -> draw_report -> mail_summary
               -> import_deliberately_corrupted_chunk, if asked for: fails and becomes a dead letter

A worker may be killed at any moment, so each of them may begin again. Those that are
`transactional=True` commit what they write together with their own completion: they happen wholly,
and once, or not at all. The others can be repeated without harm.
"""

from __future__ import annotations

import logging
from pathlib import Path

from django.conf import settings
from django.core.files.storage import default_storage
from django.core.mail import EmailMessage
from django.utils import timezone

from airports import csv_files, reports
from airports.models import Airport, Import, ImportChunk
from flexiq_django import current_job, queue, task

logger = logging.getLogger(__name__)

WEEK = 7 * 86_400
#: Trying again would not mend the file.
UNREADABLE = (csv_files.BadFileError, csv_files.BadRowError)


@task(
    transactional=True,
    max_retries=10,
    retry_backoff=0.5,
    max_retry_delay=30,
    dont_retry_on=UNREADABLE,
)
def split_file(import_id: int) -> int:
    """Cut the file into chunks and enqueue a job for each, then the report and the mail.

    All of it in one transaction with the completion of this job: however often workers are killed,
    the jobs are enqueued once.
    """
    run = Import.objects.get(pk=import_id)
    with run.file.open("rb") as file:
        layout = csv_files.check_file(file)
        spans = list(csv_files.spans(file, layout, settings.AIRPORTS_CHUNK_ROWS))
    numbers = range(1, len(spans) + 1)
    jobs = queue.enqueue_many(
        import_chunk, [(run.pk, number) for number in numbers], metadata=run.label
    )
    ImportChunk.objects.bulk_create([
        ImportChunk(
            run=run,
            number=number,
            first_row=span.first_row,
            rows=span.rows,
            offset=span.offset,
            length=span.length,
            job=job.id,
        )
        for number, span, job in zip(numbers, spans, jobs, strict=True)
    ])  # fmt: skip
    # A chunk that cannot be imported shall not keep the report from everybody: it names the gap.
    report = draw_report.apply_async(
        (run.pk,), depends_on=jobs, allow_parent_failure=True, metadata=run.label
    )
    mail = mail_summary.apply_async((run.pk,), depends_on=report, metadata=run.label)
    run.total_rows = sum(span.rows for span in spans)
    run.report_job, run.mail_job = report.id, mail.id
    if run.has_corrupted_copy:
        corrupted = import_deliberately_corrupted_chunk.apply_async(
            (run.pk,), priority=1, metadata=run.label
        )
        run.corrupted_job = corrupted.id
    run.save()
    logger.info("%s: %s rows in %s chunks", run, run.total_rows, len(spans))
    return len(spans)


@task(
    transactional=True,
    max_retries=10,
    retry_backoff=0.5,
    max_retry_delay=30,
    dont_retry_on=UNREADABLE,
)
def import_chunk(import_id: int, number: int) -> int:
    """Bring the rows of one chunk into the table, all or none."""
    chunk = ImportChunk.objects.select_related("run").get(run_id=import_id, number=number)
    if chunk.imported_at is not None:
        return 0  # somebody had a completed job run again
    with chunk.run.file.open("rb") as file:
        layout = csv_files.read_layout(file)
        rows = list(csv_files.read_span(file, layout, chunk.span))
    airports = [
        Airport(run=chunk.run, row=row_number, **csv_files.airport_values(row_number, row))
        for row_number, row in rows
    ]
    current_job.update_progress(50)
    Airport.objects.bulk_create(airports, batch_size=500)
    chunk.imported_at = timezone.now()
    chunk.save(update_fields=["imported_at"])
    return len(airports)


@task(transactional=True, max_retries=2, retry_delays=(0.5, 1.0))
def import_deliberately_corrupted_chunk(import_id: int) -> None:
    """Fail, to show what retries and a dead letter look like.

    The first chunk of the file is copied, its latitudes are made unreadable on purpose, and the
    copy is treated as any chunk. It fails three times: no row of it ever gets into the table.
    """
    chunk = ImportChunk.objects.select_related("run").get(run_id=import_id, number=1)
    with chunk.run.file.open("rb") as file:
        rows = list(csv_files.read_span(file, csv_files.read_layout(file), chunk.span))
    for number, row in rows:
        row["lat"] = "corrupted on purpose"
        csv_files.airport_values(number, row)


@task(max_retries=10, retry_backoff=0.5, max_retry_delay=30)
def draw_report(import_id: int) -> str:
    """Count the airports and draw them on a map. Drawn again, the report replaces itself."""
    run = Import.objects.get(pk=import_id)
    report = reports.build_report(run)
    current_job.update_progress(40)
    drawing = reports.draw(report)
    current_job.update_progress(80)
    folder = f"reports/import-{run.pk}"
    place = Path(default_storage.path(folder))
    place.mkdir(parents=True, exist_ok=True)
    reports.replace_file(place / reports.MAP, drawing)
    reports.replace_file(place / reports.SUMMARY, reports.summary_text(report))
    Import.objects.filter(pk=run.pk).update(report=folder, counts=report.as_json())
    current_job.update_progress(100)
    return folder


@task(transactional=True, max_retries=10, retry_backoff=0.5, max_retry_delay=30)
def mail_summary(import_id: int) -> None:
    """Mail the summary of the report. The Message-ID lets a repeated mail be known as such."""
    run = Import.objects.get(pk=import_id)
    folder = Path(default_storage.path(run.report))
    message = EmailMessage(
        subject=f"Airports: {run.file_name} is imported",
        body=(folder / reports.SUMMARY).read_text() + f"\nThe map: {folder / reports.MAP}\n",
        to=[settings.MAIL_TO],
        headers={"Message-ID": f"<{run.mail_job}@airports.example.org>"},
    )
    Import.objects.filter(pk=run.pk).update(mailed_at=timezone.now())
    message.send()  # last, so that nothing after it can fail but the commit


@queue.periodic(cron="0 2 * * *", name="archive finished jobs")
def archive_finished_jobs() -> int:
    """Every night at two: move jobs that ended more than a week ago to the archive."""
    moved = queue.archive(older_than=WEEK)
    current_job.log(f"archived {moved} jobs")
    logger.info("archived %s jobs that ended more than a week ago", moved)
    return moved
