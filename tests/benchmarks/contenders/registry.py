"""The contenders, as the measuring process knows them."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One contender, in one variant.

    ``package`` is what it is a version of, ``needs`` what else must be installed. ``busy`` is SQL
    that says, cheaply, whether a job has not ended yet; ``left`` counts those.
    """

    key: str
    title: str
    module: str
    package: str
    is_peer: bool = True
    needs: tuple[str, ...] = ()
    variant: str = ""
    busy: str = ""
    left: str = ""


_OURS_BUSY = (
    "SELECT EXISTS (SELECT 1 FROM flexiq_jobs WHERE ready_lane IS NOT NULL)"
    " OR EXISTS (SELECT 1 FROM flexiq_jobs WHERE lease_at IS NOT NULL)"
)
_OURS_LEFT = "SELECT count(*) FROM flexiq_jobs WHERE completed_at IS NULL"
_TASKS_DB = "django_tasks_database_dbtaskresult"

OURS = Entry(
    key="ours",
    title="flexiq_django",
    module="ours",
    package="django",
    is_peer=False,
    busy=_OURS_BUSY,
    left=_OURS_LEFT,
)
RAW = Entry(
    key="raw",
    title="hand-written psycopg loop",
    module="raw",
    package="psycopg",
    is_peer=False,
    busy=_OURS_BUSY,
    left=_OURS_LEFT,
)
TASKS_DB = Entry(
    key="tasks_db",
    title="django-tasks-db",
    module="tasks_db",
    package="django-tasks-db",
    needs=("psycopg",),
    busy=(
        f"SELECT EXISTS (SELECT 1 FROM {_TASKS_DB} WHERE status = 'READY')"
        f" OR EXISTS (SELECT 1 FROM {_TASKS_DB} WHERE status = 'RUNNING')"
    ),
    left=f"SELECT count(*) FROM {_TASKS_DB} WHERE status IN ('READY', 'RUNNING')",
)
PGQUEUER_10 = Entry(
    key="pgqueuer_10",
    title="pgqueuer, batches of 10 (its default)",
    module="pgqueuer_peer",
    package="pgqueuer",
    needs=("asyncpg", "uvloop"),
    variant="10",
    busy="SELECT EXISTS (SELECT 1 FROM pgqueuer)",
    left="SELECT count(*) FROM pgqueuer",
)
PGQUEUER_100 = Entry(
    key="pgqueuer_100",
    title="pgqueuer, batches of 100",
    module="pgqueuer_peer",
    package="pgqueuer",
    needs=("asyncpg", "uvloop"),
    variant="100",
    busy=PGQUEUER_10.busy,
    left=PGQUEUER_10.left,
)
PROCRASTINATE = Entry(
    key="procrastinate",
    title="procrastinate",
    module="procrastinate_peer",
    package="procrastinate",
    busy="SELECT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))",
    left="SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
)
FLEXIQ = Entry(key="flexiq", title="flexiq", module="flexiq_peer", package="flexiq")
