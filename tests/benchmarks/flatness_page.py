"""docs/benchmarks-flatness.md: the tables, and how they were taken."""

import statistics
from collections.abc import Iterator

#: How many times longer anything may take beside the large crowd.
MOST = 1.5

#: By database, by crowd, by what is measured: for each round the seconds beside few and many.
Figures = dict[str, dict[str, dict[str, list[dict[str, float]]]]]

HEADINGS = {
    "lanes": "find the lanes",
    "gates": "read the gates",
    "claim 1": "claim 1",
    "claim 100": "claim 100",
    "settle 100": "settle 100",
}

_HEAD = """\
# Benchmarks: flat claims

Whether a claim costs the same beside a thousand and beside {rows:,} other jobs of one kind: at
most {most:g} times as much is allowed. Each cell has the milliseconds beside a thousand, those
beside {rows:,}, and how many times longer that is.

This page is written by the program that measures, `make bench-flatness`.

"""

_METHODS = """\
## How it is measured

- **Two databases for each row** of the tables. The small one holds 1,000 finished jobs and a crowd
  of 1,000, the large one {rows:,} finished jobs and a crowd of {rows:,}. The crowd is older than
  the {claimable} other jobs that can be claimed, so it stands at the head of every line. Where the
  crowd itself is ready, it is what gets claimed.
- **What is timed** is what a worker does: it finds the lanes, reads pauses and limits, and claims,
  once 1 job and once 100, which it then settles as completed, with results and metric rows. A busy
  worker looks for lanes and gates once a second; here each claim is preceded by both.
- **By turns**: in each of {rounds} rounds the small and the large database are measured
  {repetitions} times, and the fastest of each counts, which is the least disturbed. The tables show
  medians of the rounds. Everything is rolled back, so that each repetition finds the same rows. The
  times are therefore without the commit, which has as many rows to write either way.
- **PostgreSQL** is vacuumed and analyzed after loading, as autovacuum would have done. **SQLite**
  is left as it is, with its log written back: nothing analyzes there by itself.

```text
make bench-flatness BENCH_ARGS="--database-url postgresql://postgres@127.0.0.1:5432/postgres"
```

`--rows`, `--rounds`, `--only sqlite` and `--crowds limit` make it shorter, `--smoke` only tries
that everything runs. That these statements read by their index, beside each of the crowds, is also
part of the test suite, on every database.
"""


def tables(found: Figures) -> str:
    """A table for each database."""
    parts = []
    for vendor, crowds in found.items():
        lines = [
            f"## {vendor}",
            "",
            f"| the crowd is | {' | '.join(HEADINGS.values())} |  |",
            f"| --- |{' --- |' * (len(HEADINGS) + 1)}",
        ]
        for title, measured in crowds.items():
            cells = [_cell(measured[name]) for name in HEADINGS]
            verdict = "FAIL" if any(ratio(measured[name]) > MOST for name in HEADINGS) else "PASS"
            lines.append(f"| {title} | {' | '.join(cells)} | {verdict} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def missed(found: Figures) -> list[str]:
    """What takes longer than it may."""
    return list(_missed(found))


def ratio(rounds: list[dict[str, float]]) -> float:
    """How many times longer it takes beside many: the median over the rounds."""
    return statistics.median(each["many"] / each["few"] for each in rounds)


def page(found: Figures, sizes: dict[str, int], facts: list[tuple[str, str]]) -> str:
    """The whole page. ``sizes``: rows, rounds, repetitions and claimable jobs."""
    where = "\n".join(f"| {name} | {value} |" for name, value in facts)
    return (
        f"{_HEAD.format(most=MOST, **sizes)}{tables(found)}\n\n{_METHODS.format(**sizes)}"
        f"\n## Where\n\n|  |  |\n| --- | --- |\n{where}\n"
    )


def _missed(found: Figures) -> Iterator[str]:
    for vendor, crowds in found.items():
        for title, measured in crowds.items():
            for name in HEADINGS:
                if ratio(measured[name]) > MOST:
                    yield f"{vendor}: {title}: {name}"


def _cell(rounds: list[dict[str, float]]) -> str:
    few, many = (
        statistics.median(each[size] for each in rounds) * 1000 for size in ("few", "many")
    )
    return f"{few:.2f}, {many:.2f}: **{ratio(rounds):.2f}**"
