"""Figures, collected run by run."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Results:
    """Samples by (part, contender, figure), in the order of the runs; and what went wrong."""

    samples: dict[tuple[str, str, str], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )
    texts: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    #: (part, contender) whose drain was ended by the time limit.
    cut: set[tuple[str, str]] = field(default_factory=set)

    def add(self, part: str, contender: str, **figures: float | None) -> None:
        """One run's figures."""
        for name, value in figures.items():
            if value is not None and not math.isnan(value):
                self.samples[part, contender, name].append(value)

    def median(self, part: str, contender: str, figure: str) -> float | None:
        """The median of the runs; None when there was none."""
        values = self.samples.get((part, contender, figure))
        return statistics.median(values) if values else None

    def spread(self, part: str, contender: str, figure: str) -> float | None:
        """Largest minus smallest, as a share of the median."""
        values = self.samples.get((part, contender, figure))
        if not values or len(values) < 2:
            return None
        return (max(values) - min(values)) / statistics.median(values)

    def ratios(self, part: str, one: str, other: str, figure: str) -> list[float]:
        """``one`` divided by ``other``, run by run."""
        pairs = zip(
            self.samples.get((part, one, figure), []),
            self.samples.get((part, other, figure), []),
            strict=False,
        )
        return [mine / theirs for mine, theirs in pairs if theirs]

    def contenders(self, part: str) -> list[str]:
        """Keys of the contenders that have figures in a part."""
        return list(dict.fromkeys(key[1] for key in self.samples if key[0] == part))


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that is not below ``share`` of them all."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]
