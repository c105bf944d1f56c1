"""Gates: which queues and tasks are paused or limited.

Whoever knows of no gate pays nothing for gates: a plain claim only checks, in the statement that
takes the jobs, that what it knows still holds (``guard``). Jobs behind a limit are taken under the
lock of the limit's row (``store/meter.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from django.db.models import Q

from flexiq_django.core.lanes import Lane, lane_name, parse_lane
from flexiq_django.models import QueueState, TaskState
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS

QUEUES = QueueState._meta.db_table
TASKS = TaskState._meta.db_table

_IS_LIMITED = Q(rate_limit__isnull=False) | Q(max_concurrent__isnull=False)
_LIMITED = "(g.rate_limit IS NOT NULL OR g.max_concurrent IS NOT NULL)"


class Gates(NamedTuple):
    """What a worker knows of pauses and limits, by name. May be out of date; see ``guard``.

    ``shared`` are the queues and tasks whose limit other jobs' ends make room in.
    """

    paused: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    tasks: frozenset[str] = frozenset()
    shared: frozenset[tuple[str, str]] = frozenset()

    @property
    def has_limits(self) -> bool:
        """Whether there is any limit."""
        return bool(self.queues or self.tasks)

    def is_limited(self, lane: Lane) -> bool:
        """Whether jobs of the lane start under a limit."""
        return lane.queue in self.queues or lane.task_name in self.tasks

    def makes_room(self, queue: str, task_name: str) -> bool:
        """Whether the end of such a job lets another one start."""
        return ("queue", queue) in self.shared or ("task", task_name) in self.shared


NO_GATES = Gates()


def read_gates(scope: Scope) -> Gates:
    """The pauses and limits in force now."""
    queues = list(
        QueueState.objects.using(scope.using)
        .filter(_IS_LIMITED | Q(paused_at__isnull=False), namespace=scope.namespace)
        .values_list("name", "paused_at", "rate_limit", "max_concurrent")
    )
    tasks = list(
        TaskState.objects.using(scope.using)
        .filter(_IS_LIMITED, namespace=scope.namespace)
        .values_list("name", "max_concurrent")
    )
    if not queues and not tasks:
        return NO_GATES
    return Gates(
        paused=frozenset(name for name, paused_at, *_ in queues if paused_at is not None),
        queues=frozenset(
            name for name, _, rate, most in queues if rate is not None or most is not None
        ),
        tasks=frozenset(name for name, _ in tasks),
        shared=frozenset(
            [("queue", name) for name, _, _, most in queues if most is not None]
            + [("task", name) for name, most in tasks if most is not None]
        ),
    )


def limited_tasks(
    scope: Scope, names: Collection[str], declared: Mapping[str, bool]
) -> frozenset[str]:
    """Those of the tasks whose jobs wait in lanes of their own.

    ``declared`` says it of the tasks whose code is here; the others are looked up.
    """
    unknown = set(names).difference(declared)
    stored = TaskState.objects.using(scope.using).filter(
        _IS_LIMITED, namespace=scope.namespace, name__in=unknown
    )
    limited = set(stored.values_list("name", flat=True)) if unknown else set()
    return frozenset(limited.union(name for name in names if declared.get(name)))


def guard(
    lane: Lane, gates: Gates, *, is_queue_locked: bool = False, is_task_locked: bool = False
) -> tuple[str, dict[str, Any]]:
    """SQL that a claim from the lane may go on, and its parameters.

    A pause or a limit that came since ``gates`` was read stops the claim: the worker then reads the
    gates anew. A locked row needs no check. Jobs of limited tasks that wait in a lane of all tasks
    are passed over; ``relane`` moves them.
    """
    conditions: list[str] = []
    params: dict[str, Any] = {}
    if not is_queue_locked:
        params["queue"] = lane.queue
        conditions.append(
            f"NOT EXISTS (SELECT 1 FROM {QUEUES} AS g WHERE g.namespace = %(namespace)s"  # noqa: S608
            f" AND g.name = %(queue)s AND (g.paused_at IS NOT NULL OR {_LIMITED}))"
        )
    if not is_task_locked:
        known = {f"task{number}": name for number, name in enumerate(sorted(gates.tasks))}
        places = ", ".join(f"%({name})s" for name in known)
        params |= known
        conditions.append(
            f"NOT EXISTS (SELECT 1 FROM {TASKS} AS g WHERE g.namespace = %(namespace)s"  # noqa: S608
            f" AND {_LIMITED}{f' AND g.name NOT IN ({places})' if known else ''})"
        )
        if known and lane.task_name is None:
            conditions.append(f"task_name NOT IN ({places})")
    return " AND ".join(conditions) or "1 = 1", params


def relane(scope: Scope, lanes: Iterable[str], gates: Gates, *, limit: int = 1000) -> bool:
    """Move jobs of limited tasks from the heads of lanes of all tasks to lanes of their own.

    They are there when the enqueuing process did not know of the limit. Looks at ``limit`` jobs of
    each lane; True when a look found nothing else, so that more may follow.
    """
    database = open_database(scope)
    is_full = False
    for lane in lanes:
        parts = parse_lane(lane)
        if not gates.tasks or parts.task_name is not None:
            continue
        heads = database.fetch(
            f"SELECT id, task_name FROM {JOBS} WHERE namespace = %(namespace)s"  # noqa: S608
            f" AND ready_lane = %(lane)s AND ready_lane IS NOT NULL"
            f" ORDER BY {database.rank}, scheduled_at, id LIMIT %(limit)s",
            {"lane": lane, "limit": limit},
        )
        rows = [
            {
                "id": database.id_text(database.read_id(key)),
                "lane": lane_name(parts.queue, parts.deployment_id, task),
            }
            for key, task in heads
            if task in gates.tasks
        ]
        database.update_joined(
            JOBS,
            {"ready_lane": "b.lane"},
            {"id": "id", "lane": "text"},
            rows,
            "j.ready_lane = %(from)s",
            {"from": lane},
        )
        is_full = is_full or len(rows) == limit
    return is_full
