"""The other queues, in a throw-away virtual environment of their own."""

import subprocess
import sys
from pathlib import Path

#: What the figures of docs/benchmarks.md were taken with.
PINNED = (
    "django==6.1.3",
    "psycopg[binary]==3.3.9",
    "django-tasks-db==0.13.0",
    "pgqueuer[asyncpg]==1.6.0",
    "uvloop==0.23.0",
    "procrastinate==3.10.0",
    "flexiq==2.1.0",
)


def make(folder: Path) -> None:
    """Create the environment, or bring it to the pinned versions."""
    python = interpreter(folder)
    if not python.exists():
        print(f"creating {folder} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    print(f"installing {', '.join(PINNED)} ...", flush=True)
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PINNED]
    subprocess.run(command, check=True)


def interpreter(folder: Path) -> Path:
    """The Python of a virtual environment."""
    return folder / "bin" / "python"
