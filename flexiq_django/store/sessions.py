"""Sessions: the jobs of one ``session_id`` run one at a time, in the order in which they are due.

One job holds the line of its session: it is ready, runs, waits for a retry or is paused, and has
``session_slot`` set, which is unique. Those behind it have ``session_line`` set and are in none of
the indexes that claims read. Whoever ends a holder lets the next one go in the same transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from uuid import UUID

from django.db import DatabaseError, transaction

from flexiq_django.core.lanes import SEPARATOR
from flexiq_django.models import Job
from flexiq_django.store.scope import Scope
from flexiq_django.store.vendors import open_database
from flexiq_django.store.vendors.base import JOBS, Database
from flexiq_django.store.vendors.batches import chunks
from flexiq_django.store.vendors.patience import tries

#: Seconds for which a look begins again while other transactions refuse it.
_PATIENCE = 5.0
#: Seconds for which it comes back to a line whose holder somebody writes to: far more than a
#: settlement takes, and little for those whose thread it holds up.
_HOLDER_PATIENCE = 0.5

#: The next lines, how many places of each were read, and whether anybody holds it.
_LINES = (
    "SELECT w.name, COUNT(*), EXISTS (SELECT 1"  # noqa: S608
    f" FROM {JOBS} AS h WHERE h.namespace = %(namespace)s AND h.session_slot = w.name)"
    f" FROM (SELECT session_line AS name FROM {JOBS} WHERE namespace = %(namespace)s"
    " AND session_line > %(after)s ORDER BY session_line LIMIT %(limit)s) AS w"
    " GROUP BY w.name ORDER BY w.name"
)


def hand_on(database: Database, sessions: Collection[str]) -> int:
    """Let the next job of each session go if none holds the line; how many go, some after it.

    In the transaction that has just taken a holder out of its line: what is committed by now is
    seen here, and what comes later looks for itself, and waits for us as it locks the holder. Not
    for long: so where our end is up to the caller, we look again after it. So we do at a line in
    which others are at work: the results that are settled with ours must not wait for them.
    """
    held = _holders(database, sessions)
    moved, unsure = _grant_all(database, [name for name in sorted(sessions) if name not in held])
    is_ours = not database.is_in_callers_transaction
    look_after_commit(database.scope, unsure if is_ours else sessions)
    return moved + len(unsure)


def hand_on_after(database: Database, ended: Iterable[UUID]) -> int:
    """``hand_on`` for jobs that were ended in this transaction, whoever of them held a line."""
    sessions: set[str] = set()
    for chunk in chunks(sorted(ended)):
        condition, params = database.among("id", chunk)
        sessions.update(
            name
            for (name,) in database.fetch(
                f"SELECT session_id FROM {JOBS} WHERE {condition} AND session_id IS NOT NULL",  # noqa: S608
                params,
            )
        )
    return hand_on(database, sessions) if sessions else 0


def look_after_commit(scope: Scope, sessions: Collection[str]) -> None:
    """Look, as soon as what was done to these lines is committed, whether a job may go."""
    if sessions:
        transaction.on_commit(
            partial(look, scope, sorted(sessions)), using=scope.using, robust=True
        )


def look(scope: Scope, sessions: Iterable[str]) -> int:
    """Let the first in line of each session go if nobody holds the line; how many went.

    For lines that jobs have just been put into. It locks the holder's row: so either it sees that
    the holder has ended, or the one that ends it sees the jobs in line. A holder that somebody
    writes to is looked at again a moment later, and given up when that takes long.
    """
    database = open_database(scope)
    moved, left = 0, sorted(set(sessions))
    for _ in tries(_HOLDER_PATIENCE):
        looks = [_look(database, chunk) for chunk in chunks(left)]
        moved += sum(went for went, _ in looks)
        left = [session for _, again in looks for session in again]
        if not left:
            break
    return moved  # of those that are left the sweep has the last word


def sweep(scope: Scope, after: str, limit: int = 500) -> tuple[str, int]:
    """The net under ``look``, for a process that died before it: look at lines without a holder.

    Reads ``limit`` places in the lines whose names come after ``after``, and passes over the rest
    of a line that is longer. Returns the name to go on from (empty when the walk is through) and
    how many jobs went.
    """
    database = open_database(scope)
    rows = database.fetch(_LINES, {"after": after, "limit": limit})
    moved = look(scope, [name for name, _places, is_held in rows if not is_held])
    is_through = sum(places for _name, places, _is_held in rows) < limit
    return "" if is_through else rows[-1][0], moved


def sql_of_lane(database: Database) -> str:
    """SQL for the lane of a row, as ``core.lanes.lane_name`` says it."""
    joined = database.concat("queue", f"'{SEPARATOR}'", "deployment_id")
    return f"CASE WHEN deployment_id IS NULL THEN queue ELSE {joined} END"


def _granted(database: Database) -> dict[str, str]:
    """What it means for a job in line to hold that line now."""
    return {
        "session_slot": "session_id",
        "session_line": "NULL",
        "ready_lane": sql_of_lane(database),
        "updated_at": "{now}",
    }


def _look(database: Database, sessions: Sequence[str]) -> tuple[int, list[str]]:
    """Look at lines in one transaction; how many jobs went, and the lines to look at again.

    It waits for no job that somebody writes to: that may take long, and what it has locked itself
    would be in everybody's way.
    """
    for _ in tries(_PATIENCE):
        try:
            with database.transaction():
                held = _holders(database, sessions)
                nobodys = [name for name in sessions if name not in held]
                moved, unsure = _grant_all(database, nobodys)
                seen = _still_holding(database, held)
                return moved, [*unsure, *(name for name in held if name not in seen)]
        except DatabaseError as error:
            _require_passing(database, error)
    return 0, []


def _still_holding(database: Database, held: Mapping[str, UUID]) -> set[str]:
    """The lines whose holder nobody writes to now, and holds on; locked until we commit."""
    if not held:
        return set()
    rows = database.lock_rows("session_slot", sorted(held.values()), only_free=True)
    return {slot for (slot,) in rows if slot is not None}


def _require_passing(database: Database, error: DatabaseError) -> None:
    """Another transaction in the way is no error: the line is looked at again. Else raise it."""
    if database.trouble(error) != "conflict" or database.connection.in_atomic_block:
        raise error


def _holders(database: Database, sessions: Collection[str]) -> dict[str, UUID]:
    """Who holds the line of each session; a line without a holder is missing."""
    jobs = Job.objects.using(database.scope.using).filter(namespace=database.scope.namespace)
    return {
        session: key
        for chunk in chunks(sorted(sessions))
        for session, key in jobs.filter(session_slot__in=chunk).values_list("session_slot", "id")
        if session is not None
    }


def _heads(database: Database, sessions: Sequence[str]) -> list[tuple[str, UUID]]:
    """The lines in which any job waits, and the first in each."""
    found: list[tuple[str, UUID]] = []
    for chunk in chunks(sessions, 100):
        arms = " UNION ALL ".join(
            f"SELECT {number}, id FROM (SELECT id FROM {JOBS}"  # noqa: S608 - names are our own
            f" WHERE namespace = %(namespace)s AND session_line = %(line{number})s"
            f" ORDER BY scheduled_at, id LIMIT 1) AS head{number}"
            for number in range(len(chunk))
        )
        rows = database.fetch(arms, {f"line{place}": name for place, name in enumerate(chunk)})
        found += [(chunk[number], database.read_id(key)) for number, key in rows]
    return found


def _grant_all(database: Database, sessions: Sequence[str]) -> tuple[int, list[str]]:
    """Give lines that nobody holds to the first in each; many take as few statements as one.

    Returns how many jobs went, and the lines in which others are at work at the same moment: it
    does not wait for them.
    """
    heads = _heads(database, sessions)
    if not heads:
        return 0, []
    ids = sorted(key for _, key in heads)
    # Picked by a plain read, locked by their keys: a locking read would on MariaDB wait for jobs
    # that others have put into line and not committed.
    rows = database.lock_rows("id, session_line", ids, only_free=True)
    locked = {database.read_id(key): line for key, line in rows}
    sure = [(session, key) for session, key in heads if locked.get(key) == session]
    try:
        with database.savepoint():
            database.update_joined(
                JOBS,
                _granted(database),
                {"id": "id"},
                [{"id": database.id_text(key)} for _, key in sure],
                "j.session_line IS NOT NULL",
            )
    except Exception as error:
        if not database.clash(error):
            raise
        sure = []  # another has just given one of the lines to a job: which?
    done = {session for session, _ in sure}
    return len(sure), [session for session, _ in heads if session not in done]
