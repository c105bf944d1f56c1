"""What a database does for a statement: its plan, or on MariaDB and MySQL the rows it really read.

The statements are recorded while a verb runs, so a test cannot drift from the code.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction

#: Tables of which no plan may read everything.
BIG = (
    "flexiq_jobs",
    "flexiq_archived_jobs",
    "flexiq_dead_letters",
    "flexiq_job_errors",
    "flexiq_task_logs",
    "flexiq_task_metrics",
    "flexiq_replay_history",
    "flexiq_job_dependencies",
)

#: Counters of MariaDB that begin alike but count something else.
_NO_ROWS = ("Handler_read_retry", "Handler_read_rnd_deleted")


@dataclass(frozen=True)
class Statement:
    """One statement as it was sent, and how many rows the server read for it (MySQL only)."""

    sql: str
    params: Any
    rows_read: int = 0


@dataclass
class Plan:
    """What a plan says: the indexes used, the big tables read whole, the sorts."""

    text: str
    indexes: set[str] = field(default_factory=set)
    scans: set[str] = field(default_factory=set)
    sorts: int = 0


def record(verb: Callable[[], Any]) -> list[Statement]:
    """The statements about big tables that a verb sends. What it did is undone."""
    connection = connections[DEFAULT_DB_ALIAS]
    found: list[Statement] = []
    # Reading the counters reads rows itself.
    own = -_rows_read(connection) + _rows_read(connection)

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        before = _rows_read(connection)
        result = execute(sql, params, many, context)
        if any(table in sql for table in BIG):
            found.append(Statement(sql, params, _rows_read(connection) - before - own))
        return result

    with transaction.atomic(), connection.execute_wrapper(note):
        verb()
        transaction.set_rollback(True)
    return found


def explain(statement: Statement, *, generic: bool = False, bitmaps: bool = False) -> Plan:
    """The plan for a recorded statement.

    ``generic`` is PostgreSQL's, for unknown parameters; ``bitmaps`` lets it put indexes together.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {statement.sql}", statement.params)
            return _read_sqlite([row[3] for row in cursor.fetchall()])
        if connection.vendor == "postgresql":
            # For a handful of rows it likes a bitmap better, and sorts them. The question is
            # whether the index gives the order when there are many.
            cursor.execute(f"SET LOCAL enable_bitmapscan = {'on' if bitmaps else 'off'}")
            if generic:
                _explain_prepared(cursor, statement)
            else:
                cursor.execute(f"EXPLAIN (FORMAT JSON) {statement.sql}", statement.params)
            return _read_postgresql(cursor.fetchone()[0])
        raise AssertionError("MariaDB only guesses: count the rows it read")


def analyze() -> None:
    """Let the planner know what is in the tables, and PostgreSQL that nothing in them is dead."""
    connection = connections[DEFAULT_DB_ALIAS]
    word = {"mysql": "ANALYZE TABLE", "postgresql": "VACUUM ANALYZE"}.get(
        connection.vendor, "ANALYZE"
    )
    with connection.cursor() as cursor:
        for table in BIG:
            cursor.execute(f"{word} {table}")


def _rows_read(connection: Any) -> int:
    """A number that grows by one with every row the server reads for this session."""
    if connection.vendor != "mysql":
        return 0
    # The driver's own cursor: what it sends is not recorded.
    cursor = connection.connection.cursor()
    cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
    counters = cursor.fetchall()
    cursor.close()
    return sum(int(value) for name, value in counters if name not in _NO_ROWS)


def _read_sqlite(lines: list[str]) -> Plan:
    plan = Plan("\n".join(lines))
    for line in lines:
        plan.indexes.update(re.findall(r"USING (?:COVERING )?INDEX (\w+)", line))
        match = re.match(r"SCAN (\w+)", line)
        if match and match[1] in BIG:
            plan.scans.add(match[1])
        plan.sorts += "USE TEMP B-TREE" in line
    return plan


def _read_postgresql(tree: Any) -> Plan:
    plan = Plan(json.dumps(tree, indent=1))
    waiting = [tree[0]["Plan"]]
    while waiting:
        node = waiting.pop()
        waiting += node.get("Plans", [])
        if "Index Name" in node:
            plan.indexes.add(node["Index Name"])
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] in BIG:
            plan.scans.add(node["Relation Name"])
        plan.sorts += "Sort" in node["Node Type"]
    return plan


def _explain_prepared(cursor: Any, statement: Statement) -> None:
    names: list[str] = []

    def place(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    sql = re.sub(r"%\((\w+)\)s", place, statement.sql).replace("%%", "%")
    values = ", ".join(f"%({name})s" for name in names)
    cursor.execute("SET plan_cache_mode = force_generic_plan")
    cursor.execute(f"PREPARE flexiq_plan AS {sql}")
    try:
        cursor.execute(f"EXPLAIN (FORMAT JSON) EXECUTE flexiq_plan ({values})", statement.params)
    finally:
        cursor.connection.cursor().execute("DEALLOCATE flexiq_plan")
        cursor.connection.cursor().execute("RESET plan_cache_mode")


# --- cases ----------------------------------------------------------------------------------------

#: What the index of the primary key is called.
KEYS = {"sqlite": "sqlite_autoindex_flexiq_jobs_1", "postgresql": "flexiq_jobs_pkey"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A verb, the indexes it has to use, and what it may cost."""

    verb: Callable[[], None]
    indexes: tuple[str, ...]
    #: Sorts that are in the nature of the question, by database, in one statement.
    sorts: Mapping[str, int] = field(default_factory=dict)
    #: The most rows that MariaDB may read.
    most: int
    #: The rows come in the order of the table's key, from its end, until the page is full.
    by_key: bool = False


def assert_reads_by_index(vendor: str, case: Case) -> None:
    """The statements of the verb read what they are after by index, and little else."""
    statements = record(case.verb)
    assert statements
    if vendor == "mysql":
        read = sum(statement.rows_read for statement in statements)
        assert read <= case.most, "\n".join(f"{each.rows_read}: {each.sql}" for each in statements)
        return
    found = [explain(statement) for statement in statements]
    for plan in found:
        assert case.by_key or not plan.scans, plan.text
        assert plan.sorts <= case.sorts.get(vendor, 0), plan.text
    used = {index for plan in found for index in plan.indexes}
    assert used.issuperset(case.indexes)
    if case.by_key:
        assert used == {KEYS[vendor]}
