"""What ran lately: how much, how long, and what failed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.dateformat import format as format_date
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from flexiq_django.admin import charts, texts
from flexiq_django.admin.charts import Bar
from flexiq_django.admin.details import Section
from flexiq_django.admin.overview.viewer import Viewer, link, number
from flexiq_django.store import figures
from flexiq_django.store.figures import Figures

#: Executions that are looked at, at most about so many.
MOST = 100_000
#: Spans that may be shown, in seconds: the longest with no more executions than that.
SPANS = (3_600, 1_800, 600, 300, 120, 60, 30, 10)
BARS = 60
TASKS_SHOWN = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """A drawing with a heading and a line below it."""

    title: str
    drawing: SafeString
    note: str
    shows_failures: bool = False


class Executions:
    """The latest executions of a namespace, from some round time ago until now."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer
        longest = timedelta(seconds=SPANS[0])
        since = figures.since_when(viewer.scope, longest=longest, most=MOST)
        reach = (viewer.now - since).total_seconds()
        seconds = next((each for each in SPANS if each <= reach + 1), SPANS[-1])
        self._width = timedelta(seconds=seconds / BARS)
        self._start = viewer.now - timedelta(seconds=seconds)

    def charts(self) -> list[Chart]:
        """How many ended, and how long they took."""
        width_ms = round(self._width / timedelta(milliseconds=1))
        spans: list[Figures | None] = [None] * BARS
        found = figures.by_bucket(
            self._viewer.scope,
            since=self._start,
            before=self._viewer.now,
            task_name=None,
            bucket_ms=width_ms,
        )
        for each in found:
            if int(each.group) < BARS:  # else the bars are a bit shorter than the span together
                spans[int(each.group)] = each
        starts = [self._start + self._width * place for place in range(BARS)]
        counted = {
            "total": number(sum(each.total for each in found)),
            "failed": number(sum(_failed(each) for each in found)),
            "span": texts.duration(width_ms),
        }
        return [
            Chart(
                title=_("Executions in each %(span)s") % counted,
                drawing=charts.bars(
                    [_of_number(*each) for each in zip(starts, spans, strict=True)],
                    told=_("%(total)s executions, %(failed)s of them failed") % counted,
                    scale=lambda value: number(value) if value % 1 == 0 else "",
                ),
                note=f"{self._reach()} {_('In front: those that failed.')}",
                shows_failures=True,
            ),
            Chart(
                title=_("How long they took"),
                drawing=charts.bars(
                    [_of_time(*each) for each in zip(starts, spans, strict=True)],
                    told=_("What half and what 95 %% of the executions took, in each %(span)s")
                    % counted,
                    scale=lambda value: str(texts.duration(value)),
                ),
                note=f"{self._reach()} {_('In front: half took up to this; behind: 95 %.')}",
            ),
        ]

    def tasks(self) -> Section:
        """The tasks that took most of the time."""
        found = figures.by_task(
            self._viewer.scope, since=self._start, before=self._viewer.now, task_name=None
        )
        found.sort(key=lambda each: each.mean * each.total, reverse=True)
        return Section(
            title=_("Tasks, by the time they took together"),
            columns=(
                *(_("task"), _("executions"), _("failed")),
                *(_("half took up to"), _("95 % took up to"), _("longest")),
            ),
            rows=[
                (
                    link(each.group, self._viewer.list_url("job", task_name=each.group)),
                    number(each.total),
                    number(_failed(each)),
                    texts.duration(each.percentiles[0]),
                    texts.duration(each.percentiles[1]),
                    texts.duration(each.most),
                )
                for each in found[:TASKS_SHOWN]
            ],
            note=self._reach(),
        )

    def _reach(self) -> str:
        ends = {"start": _clock(self._start), "end": _clock(self._viewer.now)}
        return _("From %(start)s to %(end)s.") % ends


def _of_number(start: datetime, span: Figures | None) -> Bar:
    total, failed = (span.total, _failed(span)) if span else (0, 0)
    told = {"time": _clock(start), "total": number(total), "failed": number(failed)}
    return Bar(total, failed, _("%(time)s: %(total)s executions, %(failed)s failed") % told)


def _of_time(start: datetime, span: Figures | None) -> Bar:
    half, most = span.percentiles[:2] if span else (0.0, 0.0)
    told = {"time": _clock(start), "half": texts.duration(half), "most": texts.duration(most)}
    return Bar(most, half, _("%(time)s: half up to %(half)s, 95 %% up to %(most)s") % told)


def _failed(group: Figures) -> int:
    return group.total - group.succeeded


def _clock(moment: datetime) -> str:
    return format_date(timezone.localtime(moment), "H:i:s")
