"""The worker of a developer: the next job runs the code as it was last saved."""

import os
import pty
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from flexiq_django import JobResult, queue
from tests.flows.conftest import Workers
from tests.flows.evidence import errors_of
from tests.flows.gates import Gate
from tests.processes import ROOT, WorkerProcess, is_alive
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.flows,
    pytest.mark.mechanics,
    pytest.mark.django_db(transaction=True),
]


class Project:
    """A project of its own, with one app whose code changes."""

    def __init__(self, folder: Path) -> None:
        self._tasks = folder / "parcels" / "tasks.py"
        self._tasks.parent.mkdir(parents=True)
        (self._tasks.parent / "__init__.py").touch()
        (folder / "parcels_settings.py").write_text(
            "from tests.settings import *\nINSTALLED_APPS += ['parcels']\n"
        )
        self._saved = 0
        self.environment = {
            "DJANGO_SETTINGS_MODULE": "parcels_settings",
            "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
        }

    def save(self, answer: str) -> None:
        """Save the task module, a second later than the last time."""
        self._tasks.write_text(
            dedent(f"""
                from flexiq_django import queue
                from tests.flows.gates import Gate

                @queue.task
                def answer(gate=None):
                    if gate:
                        Gate(gate).pass_through()
                    return {answer}
            """)
        )
        self._saved += 1
        os.utime(self._tasks, (1_700_000_000 + self._saved,) * 2)


def save_until_noticed(worker: WorkerProcess, project: Project, answer: str) -> None:
    """Django's reloader does not see what changed before its first look: save it again."""
    before = worker.log.count("drains")

    def is_noticed() -> bool:
        project.save(answer)
        return worker.log.count("drains") > before

    wait_until(is_noticed, 20)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def start(workers: Workers, project: Project, *, prefix: Sequence[str] = ()) -> WorkerProcess:
    return workers.start("--autoreload", environment=project.environment, prefix=prefix)


def ask(*args: str) -> JobResult:
    return queue.enqueue("parcels.tasks.answer", args=args)


@pytest.mark.slow
def test_a_job_runs_the_code_as_it_was_last_saved(
    workers: Workers, project: Project, gate: Gate
) -> None:
    project.save("'old'")
    worker = start(workers, project)
    assert ask().result(20) == "old"

    # What runs meanwhile goes back, and is run anew.
    held = ask(str(gate))
    gate.wait_until_reached()
    save_until_noticed(worker, project, "'new'")
    wait_until(lambda: errors_of(held.id) == ["interrupted by worker shutdown"], 20)
    gate.open()
    assert held.result(20) == "new"

    # Code that does not start is waited out.
    save_until_noticed(worker, project, "(")
    worker.wait_for_log("waiting for a change of the code")
    unlucky = ask()
    project.save("'mended'")
    assert unlucky.result(20) == "mended"

    assert worker.terminate() == 0
    assert queue.workers() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_jobs_end(
    workers: Workers, project: Project, gate: Gate, number: signal.Signals
) -> None:
    project.save("'old'")
    worker = start(workers, project)
    held = ask(str(gate))
    gate.wait_until_reached()

    worker.send_signal(number)
    worker.wait_for_log("drains: 1 jobs in hand")
    gate.open()

    assert worker.wait() == 0
    assert held.result(5) == "old"


class Terminal:
    """A terminal of its own for one worker, as a developer has it."""

    def __init__(self) -> None:
        self._ours, self._theirs = (os.fdopen(end, "r+b", buffering=0) for end in pty.openpty())
        #: Makes the first process of a session read this terminal, which makes it the session's.
        self.prefix = ("sh", "-c", 'exec "$@" <"$0"', os.ttyname(self._theirs.fileno()))

    def press_ctrl_c(self) -> None:
        self._ours.write(b"\x03")

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    terminal.close()


@pytest.mark.parametrize("how", ["signal", "ctrl-c"])
def test_a_worker_with_a_terminal_hears_an_interrupt_once(
    workers: Workers, project: Project, gate: Gate, terminal: Terminal, how: str
) -> None:
    project.save("'old'")
    worker = start(workers, project, prefix=terminal.prefix)
    held = ask(str(gate))
    gate.wait_until_reached()

    if how == "signal":
        worker.send_signal(signal.SIGINT)
    else:
        terminal.press_ctrl_c()
    worker.wait_for_log("drains: 1 jobs in hand")
    gate.open()

    assert worker.wait() == 0
    assert held.result(5) == "old"


def test_a_second_interrupt_leaves_at_once(
    workers: Workers, project: Project, gate: Gate, terminal: Terminal
) -> None:
    project.save("'old'")
    worker = start(workers, project, prefix=terminal.prefix)
    held = ask(str(gate))
    gate.wait_until_reached()

    terminal.press_ctrl_c()
    worker.wait_for_log("drains: 1 jobs in hand")
    terminal.press_ctrl_c()

    assert worker.wait() == 1
    assert errors_of(held.id) == ["interrupted by worker shutdown"]


def test_a_worker_goes_with_its_terminal(
    workers: Workers, project: Project, terminal: Terminal
) -> None:
    project.save("'old'")
    worker = start(workers, project, prefix=terminal.prefix)
    (child,) = worker.children()

    terminal.close()

    assert worker.wait() == -signal.SIGHUP
    wait_until(lambda: not is_alive(child), 20)
    assert queue.workers() == []


@pytest.mark.parametrize("arguments", [["--processes", "2"], ["--burst"]])
def test_what_it_does_not_go_with(workers: Workers, arguments: list[str]) -> None:
    worker = workers.launch("--autoreload", *arguments)

    assert worker.wait() == 2
    assert "--autoreload goes neither with" in worker.log


def test_a_worker_that_cannot_work_ends(workers: Workers, project: Project) -> None:
    project.save("(")
    worker = workers.launch("--autoreload", environment=project.environment)

    assert worker.wait() == 1
    assert "SyntaxError" in worker.log


def test_a_signal_before_the_worker_is_up_stops_it(workers: Workers, project: Project) -> None:
    project.save("'old'")
    worker = workers.launch("--autoreload", environment=project.environment)
    wait_until(lambda: len(worker.children()) == 1, 20)

    assert worker.terminate() == 0
