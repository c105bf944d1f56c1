"""A progress bar for a terminal; silent elsewhere."""

from __future__ import annotations

from typing import Any

_WIDTH = 30


class ProgressBar:
    """Shows how much of ``total`` is done, on one line that is drawn anew."""

    def __init__(self, stream: Any, total: int, *, is_shown: bool) -> None:
        self._stream = stream
        self._total = max(1, total)
        self._is_shown = is_shown
        self._done = 0

    def advance(self, count: int) -> None:
        """So much more is done. It may come to be more than was expected."""
        self._done += count
        self._total = max(self._total, self._done)
        if self._is_shown:
            filled = _WIDTH * self._done // self._total
            bar = "#" * filled + "-" * (_WIDTH - filled)
            share = 100 * self._done // self._total
            self._stream.write(
                f"\r[{bar}] {share:3d} %  {self._done:,} of {self._total:,} rows", ending=""
            )
            self._stream.flush()

    def end(self) -> None:
        """Leave the line."""
        if self._is_shown and self._done:
            self._stream.write("")
