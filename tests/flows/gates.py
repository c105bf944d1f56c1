"""A door in the file system: a job's body waits at it until the test opens it.

Unlike a row it also works while the database is down, and inside a transaction that holds every
lock.
"""

from pathlib import Path

from tests.waiting import wait_until

PATIENCE = 60.0


class Gate:
    """One door, known by its path; `str(gate)` travels as a job's argument."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    def __str__(self) -> str:
        return str(self._path)

    def beside(self, name: str) -> "Gate":
        """Another gate."""
        return Gate(self._path.with_name(f"{self._path.name}-{name}"))

    def open(self) -> None:
        """Let everybody through, now and later."""
        self._path.touch()

    def has_been_reached(self, by: int | str = 1) -> bool:
        """Did the body of this attempt (or of this name) arrive?"""
        return self._sign(by).exists()

    def wait_until_reached(self, by: int | str = 1, deadline: float = 30.0) -> None:
        """Return when the body of this attempt (or of this name) has arrived."""
        wait_until(lambda: self.has_been_reached(by), deadline, f"{by} at gate {self._path.name}")

    def arrivals(self) -> int:
        """How many different attempts and names have arrived."""
        return len(list(self._path.parent.glob(f"{self._path.name}.reached-*")))

    def pass_through(self, by: int | str = 1) -> None:
        """In a body: arrive, and wait until the gate is open."""
        self._sign(by).touch()
        wait_until(self._path.exists, PATIENCE, f"gate {self._path.name} to open")

    def _sign(self, by: int | str) -> Path:
        return self._path.with_name(f"{self._path.name}.reached-{by}")
