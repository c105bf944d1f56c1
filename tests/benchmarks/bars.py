"""What has to hold, and whether it does."""

from dataclasses import dataclass

from tests.benchmarks.results import Results


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One requirement. ``at_least`` compares the way up, otherwise the way down."""

    part: str
    text: str
    figure: str
    limit: float
    at_least: bool = False
    against: str | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How a requirement fared. ``holds`` is None when it could not be judged."""

    bar: Bar
    measured: float | None
    lowest: float | None = None
    highest: float | None = None

    @property
    def holds(self) -> bool | None:
        """Whether it is met."""
        if self.measured is None:
            return None
        if self.bar.at_least:
            return self.measured >= self.bar.limit
        return self.measured <= self.bar.limit

    @property
    def word(self) -> str:
        """For the table."""
        return {True: "PASS", False: "FAIL", None: "not measured"}[self.holds]


BARS = [
    Bar(
        part="drain",
        text="drain rate: at least half that of a hand-written loop",
        figure="rate",
        against="raw",
        limit=0.5,
        at_least=True,
    ),
    Bar(
        part="drain",
        text="drain rate: at least 15 times that of django-tasks-db",
        figure="rate",
        against="tasks_db",
        limit=15,
        at_least=True,
    ),
    Bar(
        part="drain",
        text="drain rate: at least that of pgqueuer, batches of 10",
        figure="rate",
        against="pgqueuer_10",
        limit=1,
        at_least=True,
    ),
    Bar(
        part="drain",
        text="drain rate: at least that of pgqueuer, batches of 100",
        figure="rate",
        against="pgqueuer_100",
        limit=1,
        at_least=True,
    ),
    Bar(
        part="latency",
        text="median latency: at most twice a bare LISTEN, NOTIFY and claim",
        figure="p50",
        against="raw",
        limit=2,
    ),
    Bar(
        part="latency",
        text="median latency: below that of procrastinate",
        figure="p50",
        against="procrastinate",
        limit=1,
    ),
    Bar(
        part="sqlite-latency",
        text="median latency on SQLite: below a third of flexiq's",
        figure="p50",
        against="flexiq",
        limit=1 / 3,
    ),
    Bar(
        part="idle",
        text="an idle worker: at most 2 statements a second",
        figure="statements",
        limit=2,
    ),
]


def judge(results: Results, parts: list[str]) -> list[Verdict]:
    """A verdict for each requirement of these parts."""
    return [_judge(results, bar) for bar in BARS if bar.part in parts]


def _judge(results: Results, bar: Bar) -> Verdict:
    mine = results.median(bar.part, "ours", bar.figure)
    if bar.against is None:
        return Verdict(bar=bar, measured=mine)
    theirs = results.median(bar.part, bar.against, bar.figure)
    if mine is None or not theirs:
        return Verdict(bar=bar, measured=None)
    ratios = results.ratios(bar.part, "ours", bar.against, bar.figure)
    return Verdict(bar=bar, measured=mine / theirs, lowest=min(ratios), highest=max(ratios))
