"""The listing methods of ``Queue``: jobs, archived jobs and dead letters, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from flexiq_django.api import options as check
from flexiq_django.api.cursors import Page, page_of, read_cursor, read_job_cursor
from flexiq_django.api.result import JobResult, plain_row
from flexiq_django.api.twins import async_twin
from flexiq_django.core.records import JobRecord
from flexiq_django.core.status import parse_status
from flexiq_django.store import listing
from flexiq_django.store.listing import JobFilter, Place
from flexiq_django.store.scope import Scope

if TYPE_CHECKING:
    from flexiq_django.api.queue import Queue


class _Unset:
    """The caller said nothing, which differs from ``None``."""

    def __repr__(self) -> str:
        return "the queue's own"


UNSET: Final = _Unset()


class Listings:
    """Lists of a namespace, newest first. They count nothing, and read no arguments or results.

    Each has two forms. With ``offset`` a page reads all the rows before it, and moves when jobs
    come or go meanwhile. With ``after``, the ``next_cursor`` of the page before, it costs the same
    at any depth and shows each row once: use that to walk through a list.
    """

    if TYPE_CHECKING:

        @property
        def scope(self) -> Scope:
            """Where the queue lives."""

    def list_jobs(
        self,
        status: str | None = None,
        queue: str | None = None,
        task_name: str | None = None,
        limit: int = 50,
        offset: int = 0,
        namespace: str | _Unset | None = UNSET,
    ) -> list[JobResult]:
        """Jobs that are not archived, newest first, which match every filter given.

        ``namespace=None`` looks into every namespace. Raises ``UnknownStatusError`` and
        ``InvalidOptionError``.
        """
        wanted = _wanted(status, queue, task_name)
        return self._handles(self._jobs(wanted, namespace, limit=limit, offset=offset))

    def list_jobs_filtered(
        self,
        status: str | None = None,
        queue: str | None = None,
        task_name: str | None = None,
        metadata_like: str | None = None,
        error_like: str | None = None,
        created_after: float | datetime | None = None,
        created_before: float | datetime | None = None,
        limit: int = 50,
        offset: int = 0,
        namespace: str | _Unset | None = UNSET,
    ) -> list[JobResult]:
        """The same with more filters.

        ``metadata_like`` and ``error_like`` find a text anywhere in the metadata and in the stored
        error (JSON, with the traceback). It is taken letter for letter on every database: case
        counts, ``%`` and ``_`` mean themselves. ``created_after`` and ``created_before`` are Unix
        milliseconds or datetimes with a time zone, and include that moment. Rows that do not match
        are read and passed over. Raises ``UnknownStatusError`` and ``InvalidOptionError``.
        """
        wanted = _wanted(status, queue, task_name, metadata_like, error_like, created_after,
                         created_before)  # fmt: skip
        return self._handles(self._jobs(wanted, namespace, limit=limit, offset=offset))

    def list_jobs_after(
        self,
        status: str | None = None,
        queue: str | None = None,
        task_name: str | None = None,
        limit: int = 50,
        after: str | None = None,
        namespace: str | _Unset | None = UNSET,
    ) -> Page[JobResult]:
        """:meth:`list_jobs` by cursor: the page that follows ``after``, or the first.

        Raises ``InvalidCursorError`` for a cursor that no list of jobs gave, and what
        :meth:`list_jobs` raises.
        """
        return self._page(_wanted(status, queue, task_name), namespace, limit, after)

    def list_jobs_filtered_after(
        self,
        status: str | None = None,
        queue: str | None = None,
        task_name: str | None = None,
        metadata_like: str | None = None,
        error_like: str | None = None,
        created_after: float | datetime | None = None,
        created_before: float | datetime | None = None,
        limit: int = 50,
        after: str | None = None,
        namespace: str | _Unset | None = UNSET,
    ) -> Page[JobResult]:
        """:meth:`list_jobs_filtered` by cursor. Pass the same filters with each cursor.

        Raises ``InvalidCursorError`` for a cursor that no list of jobs gave, and what
        :meth:`list_jobs_filtered` raises.
        """
        wanted = _wanted(status, queue, task_name, metadata_like, error_like, created_after,
                         created_before)  # fmt: skip
        return self._page(wanted, namespace, limit, after)

    def list_archived(self, limit: int = 50, offset: int = 0) -> list[JobResult]:
        """Archived jobs, the one that ended last first. Raises ``InvalidOptionError``."""
        check.check_page(limit, offset)
        return self._handles(listing.list_archived(self.scope, limit=limit, offset=offset))

    def list_archived_after(self, limit: int = 50, after: str | None = None) -> Page[JobResult]:
        """:meth:`list_archived` by cursor: the page that follows ``after``, or the first.

        Raises ``InvalidCursorError`` for a cursor that no list of archived jobs gave.
        """
        check.check_page(limit)
        place = read_cursor("archived jobs", after)
        records = listing.list_archived(self.scope, limit=limit, after=place)
        last = _end_of(records[-1]) if records else None
        return page_of("archived jobs", self._handles(records), limit, last)

    def dead_letters(self, limit: int = 10, offset: int = 0) -> list[dict[str, Any]]:
        """Dead letters, the latest failure first.

        Keys: id, original_job_id, queue, task_name, error, retry_count, failed_at, metadata,
        dlq_retry_count. Raises ``InvalidOptionError``.
        """
        check.check_page(limit, offset)
        rows = listing.dead_letters(self.scope, limit=limit, offset=offset)
        return [plain_row(row) for row in rows]

    def dead_letters_after(self, limit: int = 10, after: str | None = None) -> Page[dict[str, Any]]:
        """:meth:`dead_letters` by cursor: the page that follows ``after``, or the first.

        Raises ``InvalidCursorError`` for a cursor that no list of dead letters gave.
        """
        check.check_page(limit)
        place = read_cursor("dead letters", after)
        rows = listing.dead_letters(self.scope, limit=limit, after=place)
        last = Place(rows[-1]["failed_at"], rows[-1]["id"]) if rows else None
        return page_of("dead letters", [plain_row(row) for row in rows], limit, last)

    alist_jobs = async_twin(list_jobs)
    alist_jobs_filtered = async_twin(list_jobs_filtered)
    alist_jobs_after = async_twin(list_jobs_after)
    alist_jobs_filtered_after = async_twin(list_jobs_filtered_after)
    alist_archived = async_twin(list_archived)
    alist_archived_after = async_twin(list_archived_after)
    adead_letters = async_twin(dead_letters)
    adead_letters_after = async_twin(dead_letters_after)

    # --- how --------------------------------------------------------------------------------------

    def _jobs(
        self, wanted: JobFilter, namespace: str | _Unset | None, *, limit: int, offset: int = 0,
        after: UUID | None = None,
    ) -> list[JobRecord]:  # fmt: skip
        check.check_page(limit, offset)
        scope = self.scope
        if not isinstance(namespace, _Unset) and namespace is not None:
            check.check_text("namespace", namespace)
            scope = Scope(using=scope.using, namespace=namespace)
        return listing.list_jobs(
            scope, wanted, limit=limit, offset=offset, after=after, everywhere=namespace is None
        )

    def _page(
        self, wanted: JobFilter, namespace: str | _Unset | None, limit: int, after: str | None
    ) -> Page[JobResult]:
        place = read_job_cursor(after)
        records = self._jobs(wanted, namespace, limit=limit, after=place)
        last = records[-1].id if records else None
        return page_of("jobs", self._handles(records), limit, last)

    def _handles(self, records: Sequence[JobRecord]) -> list[JobResult]:
        return [JobResult(self._queue, record.id, record) for record in records]

    @property
    def _queue(self) -> Queue:
        return self  # type: ignore[return-value]  # a base of Queue, never used without it


def _wanted(
    status: str | None,
    queue: str | None,
    task_name: str | None,
    metadata_like: str | None = None,
    error_like: str | None = None,
    created_after: float | datetime | None = None,
    created_before: float | datetime | None = None,
) -> JobFilter:
    return JobFilter(
        status=None if status is None else parse_status(status),
        queue=check.check_text("queue", queue),
        task_name=check.check_text("task_name", task_name),
        metadata_like=check.check_part("metadata_like", metadata_like),
        error_like=check.check_part("error_like", error_like),
        created_after=check.check_instant("created_after", created_after),
        created_before=check.check_instant("created_before", created_before, is_last=True),
    )


def _end_of(record: JobRecord) -> Place:
    assert record.completed_at is not None  # noqa: S101 - what is archived has ended
    return Place(record.completed_at, record.id)
