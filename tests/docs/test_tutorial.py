"""The tutorial, step by step, in an empty folder: what it says is what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import configured_vendor
from tests.docs.pages import DOCS, ROOT, Block, Marker, read_items

#: The reader's own machine; a test has these already.
PREPARATIONS = ("python -m venv", ". venv", "pip install")
PROMPT = "$ "
ANYTHING = "..."


@pytest.mark.slow
@pytest.mark.mechanics
@pytest.mark.flows
@pytest.mark.skipif(configured_vendor() != "sqlite3", reason="the tutorial is about SQLite")
def test_the_tutorial_works(tmp_path: Path) -> None:
    is_skipped = False
    for item in read_items(DOCS / "tutorial.md"):
        if isinstance(item, Marker):
            is_skipped = item.words == "not run"
            continue
        if not is_skipped:
            follow(item, tmp_path)
        is_skipped = False
    assert (tmp_path / "shop" / "tasks.py").exists()


def follow(block: Block, folder: Path) -> None:
    """Write the file of a block, or type its commands and compare what they print."""
    if block.language == "python":
        assert block.path, f"{block}: say which file this is"
        path = folder / block.path
        before = path.read_text() if block.is_appended else ""
        path.write_text(before + "\n" + block.text)
        return
    assert block.language == "console", f"{block}: what should the reader do with it?"
    for command, expected in commands(block):
        if command.startswith(PREPARATIONS):
            continue
        printed = run(command, folder)
        if expected:
            assert matches(expected, printed), (
                f"{block}: {command}\n--- the page says\n{expected}\n--- printed\n{printed}"
            )


def commands(block: Block) -> list[tuple[str, str]]:
    """Each command of a block with the output shown below it."""
    steps: list[tuple[str, str]] = []
    for line in block.text.splitlines():
        if line.startswith(PROMPT):
            steps.append((line.removeprefix(PROMPT), ""))
        else:
            command, output = steps[-1]
            steps[-1] = (command, f"{output}{line}\n")
    return steps


def run(command: str, folder: Path) -> str:
    """Type a command in the folder; all it printed."""
    environment = {name: value for name, value in os.environ.items() if "DJANGO" not in name}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={
            **environment,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def matches(expected: str, printed: str) -> bool:
    """Whether the output is as shown; `...` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in expected.split(ANYTHING))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None
