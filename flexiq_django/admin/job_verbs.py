"""What may be done to jobs, live and archived."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from flexiq_django.admin.verbs import Entered, Skipped, Verb
from flexiq_django.api.queue import Queue
from flexiq_django.core.status import JobStatus


def _cancel(queue: Queue, row: Any, _entered: Entered, _actor: str) -> Skipped:
    return (
        None if queue.cancel_job(str(row.pk)) else _("neither pending nor paused, or not any more")
    )


def _stop(queue: Queue, row: Any, _entered: Entered, _actor: str) -> Skipped:
    return None if queue.cancel_running_job(str(row.pk)) else _("not running, or not any more")


def _continue(queue: Queue, row: Any, _entered: Entered, _actor: str) -> Skipped:
    return None if queue.continue_job(str(row.pk)) else _("not paused, or not any more")


def _requeue(queue: Queue, row: Any, _entered: Entered, _actor: str) -> Skipped:
    return None if queue.requeue_job(str(row.pk)) else _("not running, or not any more")


def replay(queue: Queue, row: Any, _entered: Entered, actor: str) -> Skipped:
    """Enqueue a job with the arguments of this one."""
    queue.replay(str(row.pk), actor=actor)
    return None


REPLAYED = ngettext_lazy(
    "%(count)d new job with the same arguments was enqueued.",
    "%(count)d new jobs with the same arguments were enqueued.",
    "count",
)


CANCEL = Verb(
    name="cancel",
    label=_("Cancel"),
    permission="cancel_job",
    act=_cancel,
    suits=lambda row: row.status in (JobStatus.PENDING, JobStatus.PAUSED),
    question=ngettext_lazy(
        "Cancel %(count)d job? What depends on it is cancelled too. This cannot be undone.",
        "Cancel %(count)d jobs? What depends on them is cancelled too. This cannot be undone.",
        "count",
    ),
    done=ngettext_lazy("%(count)d job was cancelled.", "%(count)d jobs were cancelled.", "count"),
)

STOP = Verb(
    name="stop",
    label=_("Ask to stop"),
    permission="stop_job",
    act=_stop,
    suits=lambda row: row.status == JobStatus.RUNNING,
    done=ngettext_lazy(
        "%(count)d running job was asked to stop. It stops where its task looks for that.",
        "%(count)d running jobs were asked to stop. They stop where their tasks look for that.",
        "count",
    ),
)

CONTINUE = Verb(
    name="continue",
    label=_("Continue"),
    permission="continue_job",
    act=_continue,
    suits=lambda row: row.status == JobStatus.PAUSED,
    done=ngettext_lazy(
        "%(count)d paused job is pending again.",
        "%(count)d paused jobs are pending again.",
        "count",
    ),
)

REQUEUE = Verb(
    name="requeue",
    label=_("Requeue"),
    permission="requeue_job",
    act=_requeue,
    suits=lambda row: row.status == JobStatus.RUNNING,
    question=ngettext_lazy(
        "Take %(count)d running job from its worker and let another one run it? What the present"
        " attempt still writes is lost. If its worker is alive, the job runs twice.",
        "Take %(count)d running jobs from their workers and let others run them? What the present"
        " attempts still write is lost. If their workers are alive, the jobs run twice.",
        "count",
    ),
    done=ngettext_lazy(
        "%(count)d job is pending again.", "%(count)d jobs are pending again.", "count"
    ),
)

REPLAY = Verb(name="replay", label=_("Replay"), permission="replay_job", act=replay, done=REPLAYED)

REPLAY_ARCHIVED = Verb(
    name="replay", label=_("Replay"), permission="replay_archivedjob", act=replay, done=REPLAYED
)
