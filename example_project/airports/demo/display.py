"""Showing progress: a bar on a terminal, a line now and then everywhere else."""

from __future__ import annotations

import shutil
from typing import Protocol

from airports.progress import Progress

#: Where nobody watches a bar, a line is printed at most this often, in percent.
STEP = 20


class Output(Protocol):
    """What a management command writes to."""

    @property
    def encoding(self) -> str | None:
        """The encoding of the terminal."""

    def write(self, msg: str, style_func: None = None, ending: str | None = None) -> object:
        """Write a text."""

    def flush(self) -> None:
        """Bring out what was written."""

    def isatty(self) -> bool:
        """Whether a person is looking."""


class Display:
    """Shows one import as it goes on."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._is_terminal = output.isatty()
        self._shown: tuple[str, int, str] | None = None

    def show(self, progress: Progress) -> None:
        """Show where the import is now."""
        corrupted = progress.corrupted.text if progress.corrupted else ""
        if self._is_terminal:
            self._bar(progress, corrupted)
        else:
            self._lines(progress, corrupted)

    def end(self) -> None:
        """Leave the bar as it is and go on below it."""
        if self._is_terminal and self._shown is not None:
            self._output.write("")

    def _bar(self, progress: Progress, corrupted: str) -> None:
        self._shown = ("", 0, "")
        columns = shutil.get_terminal_size().columns
        width = max(10, min(36, columns - 60))
        full = width * progress.percent // 100
        block, rest = "█░" if "utf" in (self._output.encoding or "").lower() else "#."
        bar = block * full + rest * (width - full)
        line = f"    {bar} {progress.percent:3d} %  {progress.stage}"
        if corrupted and not progress.has_ended:
            line += f"; corrupted copy: {corrupted.partition(':')[0]}"
        self._output.write(f"\r\x1b[K{line[: columns - 1]}", ending="")
        self._output.flush()

    def _lines(self, progress: Progress, corrupted: str) -> None:
        now = (progress.stage, progress.percent // STEP, corrupted)
        if now == self._shown:
            return
        before, self._shown = self._shown or ("", -1, ""), now
        if now[:2] != before[:2]:
            self._output.write(f"    {progress.stage}: {progress.text}")
        if corrupted != before[2]:
            self._output.write(f"    corrupted copy: {corrupted}")
        self._output.flush()
