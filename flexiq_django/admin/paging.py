"""Lists that page by key: no count, no offset, and a bound on the rows that a filter looks at.

A filter on a column without an index walks the primary key. Where few rows match, that walk would
go through the whole table, so it stops after ``WINDOW`` rows; the page says how far it looked, and
the next page goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest

OLDER = "older"
NEWER = "newer"

#: Rows that one page with a filter looks at: well below a second on every database.
WINDOW = 50_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A page begins next to the row ``key``, which is not on it; ``None`` is the newest end."""

    key: Any = None
    upwards: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyPage:
    """One page, newest first, with the keys that the neighbouring pages begin at."""

    rows: list[Any]
    older: Any = None
    newer: Any = None
    is_cut: bool = False


def read_page(
    matching: QuerySet[Any],
    everything: QuerySet[Any],
    place: Place,
    *,
    size: int,
    window: int | None,
) -> KeyPage:
    """Up to ``size`` rows of ``matching`` from ``place`` on.

    With a ``window`` at most that many rows of ``everything`` are looked at; ``is_cut`` says that
    there are more rows to look at than that.
    """
    order, beyond, within = (
        ("pk", "pk__gt", "pk__lte") if place.upwards else ("-pk", "pk__lt", "pk__gte")
    )
    if place.key is not None:
        matching = matching.filter(**{beyond: place.key})
        everything = everything.filter(**{beyond: place.key})
    edge = None
    if window is not None:
        keys = everything.order_by(order).values_list("pk", flat=True)
        edge = next(iter(keys[window - 1 : window]), None)
        if edge is not None:
            matching = matching.filter(**{within: edge})
    rows = list(matching.order_by(order)[: size + 1])
    is_full = len(rows) > size
    rows = rows[:size]
    onwards = rows[-1].pk if is_full else edge
    is_cut = edge is not None and not is_full
    if place.upwards:
        rows.reverse()
        return KeyPage(
            rows=rows, older=rows[-1].pk if rows else place.key, newer=onwards, is_cut=is_cut
        )
    back = None if place.key is None else rows[0].pk if rows else place.key
    return KeyPage(rows=rows, older=onwards, newer=back, is_cut=is_cut)


class KeyChangeList(ChangeList):
    """A change list ordered by descending key. ``older`` and ``newer`` in the URL name a key."""

    key_page: KeyPage

    def get_filters_params(self, params: Any = None) -> dict[str, list[str]]:
        found = super().get_filters_params(params)
        return {name: value for name, value in found.items() if name not in (OLDER, NEWER)}

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        return ["-pk"]

    def get_results(self, request: HttpRequest) -> None:
        admin: Any = self.model_admin  # a ReadOnlyAdmin
        # Not what the address says: a search that is not valid, as with a NUL, looks for nothing.
        term = self.query.strip()
        narrow = bool(self.get_filters_params()) or bool(term)
        self.key_page = read_page(
            self.queryset.defer(*admin.wide_columns),
            self.root_queryset.order_by(),
            self._place(request),
            size=self.list_per_page,
            window=admin.get_window(request, term) if narrow else None,
        )
        self.result_list = self.key_page.rows
        self.result_count = self.full_result_count = len(self.key_page.rows)
        self.show_full_result_count = False
        self.show_admin_actions = True
        self.can_show_all = self.multi_page = False
        # The stock templates ask for it; it never sees more than the rows of this page.
        self.paginator = Paginator(self.key_page.rows, self.list_per_page)

    def _place(self, request: HttpRequest) -> Place:
        for name in (OLDER, NEWER):
            text = request.GET.get(name)
            if text is not None:
                return Place(key=_read_key(self.model, text), upwards=name == NEWER)
        return Place()

    # --- for the template -------------------------------------------------------------------------

    def newest_link(self) -> str | None:
        """The link to the newest page; ``None`` on it."""
        if self.key_page.newer is None:
            return None
        return str(self.get_query_string(remove=[OLDER, NEWER]))

    def newer_link(self) -> str | None:
        """The link to the page before; ``None`` where there is none."""
        return self._link(NEWER, self.key_page.newer)

    def older_link(self) -> str | None:
        """The link to the next page; ``None`` on the last one."""
        return self._link(OLDER, self.key_page.older)

    def _link(self, name: str, key: Any) -> str | None:
        if key is None:
            return None
        other = NEWER if name == OLDER else OLDER
        return str(self.get_query_string({name: str(key)}, remove=[other]))


def _read_key(model: type[Model], text: str) -> Any:
    """The key a URL names; ``None``, which is the newest page, for text that cannot be one."""
    try:
        return model._meta.pk.to_python(text)
    except ValidationError:
        return None
