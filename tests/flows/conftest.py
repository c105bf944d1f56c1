"""Workers and a namespace of its own for every flow."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.flows.gates import Gate
from tests.processes import WorkerProcess

#: A lease so short that a test can outlive it.
SHORT_LEASE = {"LOCK_GRACE_SECONDS": 2, "STOP_TIMEOUT_SECONDS": 1}

Starter = Callable[..., WorkerProcess]


class Workers:
    """Starts workers of one namespace on the test's database."""

    def __init__(self, start: Starter, namespace: str) -> None:
        self._start = start
        self.namespace = namespace

    def start(
        self,
        *arguments: str,
        environment: dict[str, str] | None = None,
        prefix: Sequence[str] = (),
        **settings: Any,
    ) -> WorkerProcess:
        """A worker that is ready to claim. `settings` are keys of its FLEXIQ dict."""
        worker = self.launch(*arguments, environment=environment, prefix=prefix, **settings)
        worker.wait_for_log(r"worker \S+ started")
        return worker

    def launch(
        self,
        *arguments: str,
        environment: dict[str, str] | None = None,
        prefix: Sequence[str] = (),
        **settings: Any,
    ) -> WorkerProcess:
        """A worker that may still be on its way."""
        return self._start(
            *arguments,
            settings={"NAMESPACE": self.namespace, **settings},
            environment=environment,
            prefix=prefix,
        )

    def burst(self, *arguments: str, deadline: float = 60.0, **settings: Any) -> WorkerProcess:
        """A worker that has run all there was to run, and has left with 0."""
        worker = self.launch("--burst", *arguments, **settings)
        assert worker.wait(deadline) == 0, worker.log_tail()
        return worker


@pytest.fixture
def namespace(settings: Any) -> str:
    """The namespace in which the default queue of this test stores its jobs."""
    name = f"flow-{uuid4().hex[:12]}"
    settings.FLEXIQ = {**settings.FLEXIQ, "NAMESPACE": name}
    return name


@pytest.fixture
def workers(start_worker: Starter, namespace: str) -> Workers:
    """Workers that serve the namespace of the test."""
    return Workers(start_worker, namespace)


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """A door for the body of a job."""
    return Gate(tmp_path / "gate")


@pytest.fixture
def second_gate(tmp_path: Path) -> Gate:
    """Another door."""
    return Gate(tmp_path / "second-gate")
