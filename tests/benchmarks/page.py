"""docs/benchmarks.md: the tables, how they were taken, how to take them again."""

from tests.benchmarks.measures import Sizes
from tests.benchmarks.report import Report

_TOP = """\
# Benchmarks

How fast one worker is, next to other queues on the same machine in the same run. The jobs do
nothing, so these are the costs of the queue itself. Absolute figures say little about another
machine; ratios of one run say more.

This page is written by the program that measures, `make bench`.

Beside it: [claims beside a million jobs](benchmarks-flatness.md), [reading among a million
jobs](benchmarks-million.md), [a sweep beside a busy worker](benchmarks-sweep.md), [the memory of a
worker](benchmarks-memory.md).
"""

_METHODS = """\
## How it is measured

Each contender is a real worker process, started the way its documentation says, with its default
options, on a database that was created for this one measurement and is dropped after it. The
contenders take turns (A, B, C, A, B, C, ...) for {repeat} rounds; the tables show medians. *Spread*
is the largest minus the smallest figure, as a share of the median; *run by run* is the smallest and
the largest ratio of two measurements of the same round.

- **Drain.** {jobs:,} no-op jobs are stored, `ANALYZE` and `CHECKPOINT` follow, then one worker
  starts. The clock runs from the first line of the first body to the moment the database shows no
  job that has not ended. It is asked for the first time when the last body has begun, then every
  2 ms. Whoever is not done after {drain_limit:g} s is rated by what it has done. Our worker also
  writes a metric row for each job.
- **The hand-written loop** works on our own tables with all their indexes and constraints and
  writes the rows our worker writes: it claims 100 jobs by one `UPDATE ... RETURNING`, runs them,
  and completes them with their metric rows by one more statement, everything prepared and binary.
  It is what is left when a queue has no threads, leases, retries, limits or timeouts.
- **django-tasks-db** has no bulk enqueue: one real row is copied by SQL.
- **pgqueuer** runs on asyncio with uvloop and asyncpg's pool, through `PgQueuer.run()`.
- **Enqueue to start.** A worker waits; another process enqueues {latency_jobs} jobs, one every
  {interval:.0f} ms on average (drawn between half and one and a half of it, so that no poll is in
  step). The clock is read just before the call that enqueues and in the first line of the body;
  both processes read the same monotonic clock. {warm_up} jobs before that do not count. The bare
  round trip is one statement that inserts the row and notifies, and a process that waits in
  `select()`, claims with one `UPDATE ... RETURNING` and notes the time. procrastinate runs 10 async
  tasks at a time, flexiq 8 threads; on SQLite each has the settings its documentation asks for
  (ours: WAL, `synchronous=NORMAL`).
- **Idle.** The worker has run one job and is left alone for {settle:g} s. Then for {idle:g} s every
  statement it sends is counted by a relay between it and the server, which reads the protocol: each
  simple query and each execution of a prepared one, `BEGIN` and `COMMIT` included.
- **Enqueue.** Single: {singles:,} calls one after the other, each committed. Bulk: the preload of
  the drain, in calls of 5,000.

## How to take them again

With a PostgreSQL server on which you may create databases, on a machine that is otherwise quiet:

```text
make bench BENCH_ARGS="--database-url postgresql://postgres@127.0.0.1:5432/postgres"
```

The peers are no dependencies of the package. To measure against the versions above, give them an
environment of their own:

```text
python -m tests.benchmarks --make-peers-venv .venv-peers
python -m tests.benchmarks --peers-venv .venv-peers --output docs/benchmarks.md --database-url ...
```

`--only drain,latency` takes a part, `--smoke` only tries that everything runs, `--strict` ends with
an error when a requirement is missed. Nothing in the test suite depends on time.
"""


def page(report: Report, sizes: Sizes, *, repeat: int, warm_up: int) -> str:
    """The whole page."""
    methods = _METHODS.format(
        repeat=repeat,
        jobs=sizes.jobs,
        drain_limit=sizes.drain_limit,
        latency_jobs=sizes.latency_jobs,
        interval=sizes.latency_interval * 1000,
        warm_up=warm_up,
        settle=sizes.settle,
        idle=sizes.idle,
        singles=sizes.singles,
    )
    return f"{_TOP}\n{report.tables()}\n{methods}"
