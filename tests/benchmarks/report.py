"""The figures as Markdown."""

from collections.abc import Iterable, Sequence
from typing import Any

from tests.benchmarks.bars import Bar, Verdict, judge
from tests.benchmarks.contenders.registry import Entry
from tests.benchmarks.results import Results

Column = tuple[str, str, str]
#: (heading, figure, format) of the tables. The first figure of each also shows its spread.
COLUMNS: dict[str, list[Column]] = {
    "drain": [
        ("jobs/s", "rate", ",.0f"),
        ("CPU of the worker, µs/job", "cpu_us", ",.0f"),
        ("memory after, MB", "memory", ".0f"),
    ],
    "latency": [("p50, ms", "p50", ".2f"), ("p95, ms", "p95", ".2f"), ("p99, ms", "p99", ".2f")],
    "idle": [("statements/s", "statements", ".2f"), ("CPU, %", "cpu", ".2f")],
    "enqueue": [("single, jobs/s", "single", ",.0f"), ("bulk, jobs/s", "bulk", ",.0f")],
}
TITLES = {
    "drain": "Drain on PostgreSQL",
    "sqlite-drain": "Drain on SQLite",
    "latency": "Enqueue to start on PostgreSQL",
    "sqlite-latency": "Enqueue to start on SQLite",
    "idle": "An idle worker on PostgreSQL",
    "sqlite-idle": "An idle worker on SQLite",
    "enqueue": "Enqueue on PostgreSQL",
    "sqlite-enqueue": "Enqueue on SQLite",
}
_WHOSE = "The requirements are our own: a change that breaks one does not go in."


class Report:
    """Everything of one run, as text."""

    def __init__(
        self,
        results: Results,
        plan: dict[str, list[Entry]],
        *,
        judged: bool,
        facts: Sequence[tuple[str, str]],
        versions: dict[str, str],
        command: str,
        taken: str,
    ) -> None:
        self.results = results
        self.plan = plan
        #: Empty where the sizes were too small to mean anything.
        self.verdicts = judge(results, list(plan)) if judged else []
        self._facts = facts
        self._versions = versions
        self._command = command
        self._taken = taken

    def tables(self) -> str:
        """The requirements and the figures."""
        parts = [f"## What has to hold\n\n{_WHOSE}\n\n{self._bars()}\n"] if self.verdicts else []
        for part in self.plan:
            if self.results.contenders(part):
                parts.append(f"## {TITLES[part]}\n\n{self._part(part)}\n")
        parts.append(f"## Where\n\n{self._where()}\n")
        notes = [*self.results.skipped, *(f"failed: {text}" for text in self.results.errors)]
        if notes:
            lines = "\n".join(f"- {note.splitlines()[0]}" for note in notes)
            parts.append(f"## Left out\n\n{lines}\n")
        return "\n".join(parts)

    def _bars(self) -> str:
        return _table(
            ["requirement", "measured", "run by run", "needed", ""],
            [
                [
                    verdict.bar.text,
                    _number(verdict.measured, ".2f"),
                    _range(verdict),
                    _needed(verdict.bar),
                    verdict.word,
                ]
                for verdict in self.verdicts
            ],
        )

    def _part(self, part: str) -> str:
        columns = [
            column
            for column in COLUMNS[part.removeprefix("sqlite-")]
            if any(self.results.median(part, e.key, column[1]) for e in self.plan[part])
        ]
        first = columns[0]
        headings = ["", first[0], "spread", f"{_OURS} is", *(name for name, _, _ in columns[1:])]
        rows = [
            [
                self._title(entry),
                self._cell(part, entry, first) + self._star(part, entry),
                _number(self.results.spread(part, entry.key, first[1]), ".0%"),
                self._against(part, entry, first[1]),
                *(self._cell(part, entry, column) for column in columns[1:]),
            ]
            for entry in self.plan[part]
            if self.results.median(part, entry.key, first[1]) is not None
        ]
        text = _table(headings, rows)
        if any(self._star(part, entry) for entry in self.plan[part]):
            text += "\n\n\\* ended by the time limit; the rate is of what was done by then."
        sent = self.results.texts.get((part, "ours"))
        if sent:
            text += "\n\nWhat our idle worker sent:\n\n" + "\n".join(f"- {line}" for line in sent)
        return text

    def _title(self, entry: Entry) -> str:
        version = self._versions.get(entry.key) if entry.is_peer else None
        return f"{entry.title} {version}" if version else entry.title

    def _cell(self, part: str, entry: Entry, column: Column) -> str:
        return _number(self.results.median(part, entry.key, column[1]), column[2])

    def _star(self, part: str, entry: Entry) -> str:
        return "\\*" if (part, entry.key) in self.results.cut else ""

    def _against(self, part: str, entry: Entry, figure: str) -> str:
        mine = self.results.median(part, "ours", figure)
        theirs = self.results.median(part, entry.key, figure)
        if entry.key == "ours" or mine is None or not theirs:
            return ""
        return f"{mine / theirs:.2f} times"

    def _where(self) -> str:
        names = {entry.key: entry for entries in self.plan.values() for entry in entries}
        packages = {names[key].package: version for key, version in self._versions.items()}
        versions = ", ".join(f"{name} {version}" for name, version in sorted(packages.items()))
        rows = [
            ["Taken", self._taken],
            ["Command", f"`{self._command}`"],
            *([name, value] for name, value in self._facts),
            ["Packages", versions],
        ]
        return _table(["", ""], rows)


_OURS = "flexiq_django"


def _needed(bar: Bar) -> str:
    limit = f"{bar.limit:.2f}".rstrip("0").rstrip(".")
    return f"at {'least' if bar.at_least else 'most'} {limit}"


def _range(verdict: Verdict) -> str:
    if verdict.lowest is None or verdict.highest is None:
        return ""
    return f"{verdict.lowest:.2f} to {verdict.highest:.2f}"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)
