"""Run the code of a page as its reader would, in this process and on the test database.

Blocks that name a file become that module, the others share one namespace from top to bottom. A
line that ends in `# -> value` is checked. Markers between the blocks:

    <!-- worker -->        a worker in burst mode comes by before the next block
    <!-- worker after -->  ... after it
    <!-- framework -->     the page ends here where Django has no task framework
    <!-- unittest -->      the test cases of the page so far are run
"""

import ast
import contextlib
import gc
import io
import sys
import threading
import unittest
import warnings
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from django.core.management import call_command

from flexiq_django.conf import find_problems
from tests.docs.pages import Block, Marker, read_items

EXPECTED = "# -> "


class Page:
    """A page whose code is being run. `modules` are its files so far, by dotted name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: dict[str, Any] = {"__name__": "shell"}
        self.modules: dict[str, ModuleType] = {}

    def run(self) -> None:
        """Run every block. AssertionError where a line does not give what it says."""
        is_worker_due = False
        for item in read_items(self.path):
            if isinstance(item, Marker):
                if item.words == "framework" and find_spec("django.tasks") is None:
                    return
                is_worker_due = is_worker_due or item.words == "worker after"
                self._obey(item)
            elif item.language == "python":
                self._run_block(item)
                if is_worker_due:
                    is_worker_due = False
                    run_worker()

    def _obey(self, marker: Marker) -> None:
        if marker.words == "worker":
            run_worker()
        elif marker.words == "unittest":
            run_unittests(self.names)
        else:
            assert marker.words in {"worker after", "not run", "framework"}, (
                f"{self.path}: unknown {marker}"
            )

    def _run_block(self, block: Block) -> None:
        names = self.names if block.path is None else vars(self._module(block))
        for node in ast.parse(block.text).body:
            # Line numbers of the page, so that a traceback points there.
            ast.increment_lineno(node, block.line)
            code: ast.Module | ast.Expression = ast.Module(body=[node], type_ignores=[])
            expected = _expected(block, node)
            if expected is None:
                exec(compile(code, str(block.page), "exec"), names)  # noqa: S102 - our own pages
                continue
            assert isinstance(node, ast.Expr), f"{block.page}:{node.lineno} is no expression"
            code = ast.Expression(node.value)
            found = eval(compile(code, str(block.page), "eval"), names)  # noqa: S307
            assert found == ast.literal_eval(expected), (
                f"{block.page}:{node.lineno}: {ast.unparse(node)} gives {found!r}, not {expected}"
            )
        if "FLEXIQ" in names:
            assert find_problems(names["FLEXIQ"]) == []

    def _module(self, block: Block) -> ModuleType:
        assert block.path is not None
        name = block.path.removesuffix(".py").replace("/", ".")
        if name not in self.modules or not (block.is_appended or self.path.stem == "README"):
            package = name.rpartition(".")[0]
            if package not in sys.modules:
                sys.modules[package] = ModuleType(package)
            self.modules[name] = sys.modules[name] = ModuleType(name)
            setattr(sys.modules[package], name.rpartition(".")[2], self.modules[name])
        return self.modules[name]


def _expected(block: Block, node: ast.stmt) -> str | None:
    line = block.text.splitlines()[(node.end_lineno or node.lineno) - block.line - 1]
    return line.partition(EXPECTED)[2] or None


def run_worker() -> None:
    """A worker that runs what there is, in this process, where the page's tasks are declared."""
    with ended_threads():
        call_command("flexiq_worker", burst=True, concurrency=4, verbosity=0)


@contextlib.contextmanager
def ended_threads() -> Iterator[None]:
    """Wait for the threads of a worker: they leave it to their end to close what they opened."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        for thread in threading.enumerate():
            if thread.name.startswith("flexiq-"):
                thread.join(10)
        gc.collect()


def run_unittests(names: Mapping[str, Any]) -> None:
    """The test cases among the names."""
    cases = [
        value
        for value in names.values()
        if isinstance(value, type)
        and issubclass(value, unittest.TestCase)
        and value.__module__ == names["__name__"]
    ]
    assert cases, "there is no test case on the page"
    report = io.StringIO()
    suite = unittest.TestSuite(
        unittest.defaultTestLoader.loadTestsFromTestCase(case) for case in cases
    )
    with ended_threads():
        outcome = unittest.TextTestRunner(stream=report, verbosity=2).run(suite)
    assert outcome.testsRun > 0, report.getvalue()
    assert outcome.wasSuccessful(), report.getvalue()
