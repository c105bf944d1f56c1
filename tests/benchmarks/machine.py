"""What the figures were measured on."""

import os
import platform
import statistics
import time
from pathlib import Path

from tests.benchmarks import databases


def describe(server: str | None) -> list[tuple[str, str]]:
    """Pairs of words and values for the page."""
    facts = [
        ("Processor", f"{_processor()}, {os.cpu_count()} cores"),
        ("Memory", _memory()),
        ("System", f"{platform.system()} {platform.release()}, {platform.machine()}"),
        ("Python", platform.python_version()),
    ]
    import sqlite3

    facts.append(("SQLite", sqlite3.sqlite_version))
    if server:
        facts += _describe_server(server)
    return facts


def load() -> float:
    """How many processes wanted to run, on average over the last minute."""
    return os.getloadavg()[0]


def load_warning() -> str | None:
    """A sentence when something else is busy on the machine."""
    if load() > 0.3:
        return f"other programs are busy (load {load():.1f}): do not trust the figures"
    return None


def _describe_server(url: str) -> list[tuple[str, str]]:
    with databases.fresh_postgresql(url) as own, databases.connect(own) as connection:

        def show(name: str) -> str:
            return str(connection.execute(f"SHOW {name}").fetchone()[0])

        names = ("fsync", "synchronous_commit", "shared_buffers", "max_connections")
        settings = ", ".join(f"{name} {show(name)}" for name in names)
        connection.execute("CREATE TABLE commits (id integer)")
        times = []
        for number in range(200):
            began = time.perf_counter()
            connection.execute("INSERT INTO commits VALUES (%s)", [number])
            times.append(time.perf_counter() - began)
        return [
            ("PostgreSQL", f"{show('server_version')}, {settings}"),
            ("One committed insert there", f"{statistics.median(times) * 1000:.2f} ms"),
        ]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> str:
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return "unknown"
    return f"{pages * size / 2**30:.0f} GiB"
