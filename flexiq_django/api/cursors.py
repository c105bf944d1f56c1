"""Pages of a listing, and the cursors that say where the next one begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Literal, TypeVar
from uuid import UUID

from django.core import signing

from flexiq_django.exceptions import InvalidCursorError
from flexiq_django.store.listing import Place

T = TypeVar("T")

#: Lists that are ordered differently; a cursor of one says nothing about another.
Listing = Literal["jobs", "archived jobs", "dead letters"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a listing: iterate over it, take its ``len()``, or use ``items``.

    Pass ``next_cursor`` on as ``after`` to get the page that follows. ``None`` means that this page
    had room for more rows, so it was the last.
    """

    items: Sequence[T]
    next_cursor: str | None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def page_of(listing: Listing, items: Sequence[T], limit: int, last: UUID | Place | None) -> Page[T]:
    """The page these rows are; ``last`` is the place of its last row. Only a full one goes on."""
    is_full = last is not None and len(items) >= limit
    return Page(items, _write(listing, last) if last is not None and is_full else None)


def read_job_cursor(after: str | None) -> UUID | None:
    """Where a list of jobs goes on. Raises ``InvalidCursorError``."""
    return None if after is None else UUID(hex=_read("jobs", after))


def read_cursor(listing: Listing, after: str | None) -> Place | None:
    """Where a list ordered by a time goes on. Raises ``InvalidCursorError``."""
    if after is None:
        return None
    microseconds, key = _read(listing, after)
    return Place(_EPOCH + microseconds * _MICROSECOND, UUID(hex=key))


def _write(listing: Listing, place: UUID | Place) -> str:
    content: Any = (
        place.hex
        if isinstance(place, UUID)
        else [(place.moment - _EPOCH) // _MICROSECOND, place.id.hex]
    )
    return _signer(listing).sign_object(content)


def _read(listing: Listing, after: object) -> Any:
    try:
        if isinstance(after, str):
            return _signer(listing).unsign_object(after)
    except (signing.BadSignature, UnicodeError):
        pass
    shown = repr(after)
    raise InvalidCursorError(
        f"after is {shown if len(shown) <= 80 else f'{shown[:80]}...'}; allowed is the next_cursor"
        f" of a page of {listing}, unchanged and made under the same SECRET_KEY."
        " Leave it out to begin with the first page"
    )


def _signer(listing: Listing) -> signing.Signer:
    # What is signed with this salt was written here, so whatever unsigns has the right shape.
    return signing.Signer(salt=f"flexiq_django.cursors.{listing}")
