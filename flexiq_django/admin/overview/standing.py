"""What stands where at this moment: jobs, queues, workers, schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.template.backends.utils import csrf_input
from django.utils.html import format_html
from django.utils.translation import gettext as _

from flexiq_django.admin import texts
from flexiq_django.admin.details import Section
from flexiq_django.admin.overview.viewer import Viewer, link, number
from flexiq_django.core import fleet
from flexiq_django.core.lanes import parse_lane
from flexiq_django.core.status import JobStatus
from flexiq_django.models import DeadLetter, PeriodicTask, QueueState
from flexiq_django.store import figures, inspect, workers
from flexiq_django.store.figures import Live

#: Rows of a table.
SHOWN = 50
#: Dead letters that are counted, at most.
MOST_COUNTED = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """A figure with its name, and where its rows are listed."""

    label: str
    figure: str
    url: str | None = None
    is_bad: bool = False


class Standing:
    """The jobs that have not ended, and who is there for them."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer
        self.workers = workers.live(viewer.scope)
        self._jobs = figures.live_by_queue(viewer.scope)
        self._lanes = inspect.ready_lanes(viewer.scope)
        self._oldest: dict[str, datetime] = {}
        for lane in self._lanes:
            queue = parse_lane(lane.name).queue
            self._oldest[queue] = min(lane.oldest, self._oldest.get(queue, lane.oldest))

    def warnings(self) -> list[str]:
        """What looks wrong, as sentences without a full stop, as far as the user may see it."""
        names = [lane.name for lane in self._lanes]
        paused = inspect.paused_queues(self._viewer.scope)
        found = [each.text for each in fleet.unserved(names, paused=paused, live=self.workers)]
        if self._viewer.may("view_worker"):
            found += [text for _code, text in fleet.disagreements(self.workers)]
        return found

    def tiles(self) -> list[Tile]:
        """The jobs of all queues together, and the dead letters."""
        jobs = Live(*map(sum, zip(*self._jobs.values(), strict=True)))

        def listed(status: JobStatus) -> str | None:
            return self._viewer.list_url("job", status=status.value)

        oldest = self._viewer.age(min(self._oldest.values(), default=None))
        tiles = [
            Tile(label=_("ready"), figure=number(jobs.ready), url=listed(JobStatus.PENDING)),
            Tile(label=_("oldest ready"), figure=oldest or "-"),
            Tile(label=_("due later"), figure=number(jobs.later)),
            Tile(label=_("waiting for others"), figure=number(jobs.waiting)),
            Tile(label=_("running"), figure=number(jobs.running), url=listed(JobStatus.RUNNING)),
            Tile(label=_("paused"), figure=number(jobs.paused), url=listed(JobStatus.PAUSED)),
        ]
        if self._viewer.may("view_deadletter"):
            dead = self._viewer.rows(DeadLetter)[: MOST_COUNTED + 1].count()
            figure = number(dead)
            if dead > MOST_COUNTED:
                figure = _("over %(count)s") % {"count": number(MOST_COUNTED)}
            url = self._viewer.list_url("deadletter")
            tiles.append(Tile(label=_("dead letters"), figure=figure, url=url, is_bad=dead > 0))
        return tiles

    def tables(self) -> list[Section]:
        """Queues, workers and schedules, as far as the user may see them."""
        tables = {
            "queuestate": self._queues,
            "worker": self._workers,
            "periodictask": self._schedules,
        }
        return [table() for model, table in tables.items() if self._viewer.may(f"view_{model}")]

    def _queues(self) -> Section:
        states = {row.name: row for row in self._viewer.rows(QueueState)}
        served = {name for worker in self.workers for name in worker.queues or ()}
        return Section(
            title=_("Queues"),
            columns=(
                *(_("queue"), _("ready"), _("oldest ready"), _("waiting"), _("running")),
                *(_("live workers"), _("state")),
            ),
            rows=[
                self._queue(name, self._jobs.get(name, Live()), states.get(name))
                for name in sorted({*self._jobs, *states, *served})
            ],
        )

    def _queue(self, name: str, jobs: Live, state: QueueState | None) -> tuple[Any, ...]:
        return (
            link(name, self._viewer.list_url("job", queue=name)),
            number(jobs.ready),
            self._viewer.age(self._oldest.get(name)) or "-",
            number(jobs.later + jobs.waiting + jobs.paused),
            number(jobs.running),
            number(sum(each.is_running and each.serves(name) for each in self.workers)),
            self._switch(name, state),
        )

    def _switch(self, name: str, state: QueueState | None) -> Any:
        """Whether the queue is open, and the button that changes it."""
        viewer = self._viewer
        if state is not None and state.paused_at is not None:
            word, label, may = _("paused"), _("Resume"), viewer.may("resume_queue")
            url = viewer.url("queuestate_do_to", texts.quoted(state.pk), "resume")
        else:
            word, label = _("open"), _("Pause")
            may = viewer.may("pause_queue") and viewer.is_default
            url = viewer.url("queuestate_do", "pause")
        if not may or url is None:
            return word
        return format_html(
            '<form method="post" action="{}" class="flexiq-switch">{} {}'
            '<input type="hidden" name="name" value="{}">'
            '<input type="hidden" name="confirmed" value="yes">'
            '<button type="submit" class="button">{}</button></form>',
            *(url, word, csrf_input(viewer.request), name, label),
        )

    def _workers(self) -> Section:
        return Section(
            title=_("Live workers"),
            columns=(
                *(_("worker"), _("state"), _("queues"), _("executor"), _("jobs at once")),
                _("last heartbeat"),
            ),
            rows=[
                (
                    link(each.id, self._viewer.row_url("worker", each.id)),
                    texts.printable(each.state),
                    _("every queue") if each.queues is None else texts.listing([*each.queues]),
                    texts.printable(each.executor),
                    number(each.concurrency),
                    _("%(age)s ago") % {"age": self._viewer.age(each.heartbeat_at)},
                )
                for each in self.workers[:SHOWN]
            ],
            note=_rest(self.workers),
        )

    def _schedules(self) -> Section:
        rows = self._viewer.rows(PeriodicTask).filter(enabled=True).order_by("next_run_at")
        found = list(rows[: SHOWN + 1])
        return Section(
            title=_("Next runs"),
            columns=(_("schedule"), _("task"), _("cron expression"), _("next run")),
            rows=[
                (
                    link(each.name, self._viewer.row_url("periodictask", each.pk)),
                    texts.printable(each.task_name),
                    texts.printable(each.cron),
                    texts.moment(each.next_run_at),
                )
                for each in found[:SHOWN]
            ],
            note=_rest(found),
        )


def _rest(found: Sequence[Any]) -> str:
    return _("Further ones are not shown.") if len(found) > SHOWN else ""
