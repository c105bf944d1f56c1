"""The rules of docs/architecture.md that imports cannot show, read off the syntax tree.

The import contracts in pyproject.toml say who may import whom; these say what a room may do.
"""

import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from tests.source_rules import (
    CONNECTIONS,
    STOPWATCHES,
    WALL_CLOCKS,
    Finding,
    Source,
    database_control,
    long_functions,
    row_writes,
    uses_of,
    vendor_reads,
)

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "flexiq_django"

TOP_LEVEL = frozenset({
    "pyproject.toml", "flexiq_django", "tests", "example_project", "docs", "README.md",
    "Makefile", "LICENSE",
})  # fmt: skip
NAMELESS = frozenset({"util", "utils", "helper", "helpers", "common", "misc"})
LONGEST_FILE = 300
LONGEST_FUNCTION = 60  # the aim is 40


@cache
def package_sources() -> tuple[Source, ...]:
    """Every module of the package but its migrations."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return tuple(read_source(path) for path in paths if not is_in(path, "migrations"))


def read_source(path: Path) -> Source:
    folder = path.relative_to(ROOT).parent
    return Source(path=path, text=path.read_text(), package=".".join(folder.parts))


def snippet(text: str, package: str = "flexiq_django.admin") -> Source:
    return Source(path=Path("snippet.py"), text=text, package=package)


def is_in(path: Path, *places: str) -> bool:
    """Is the file one of `places`, or inside one? Places are relative to the package."""
    return any(path.is_relative_to(PACKAGE / place) for place in places)


def broken(rule: Callable[[Source], Iterable[Finding]], *, allowed_in: tuple[str, ...]) -> str:
    """All that `rule` finds outside the allowed places, one per line."""
    return "\n".join(
        f"  {source.path.relative_to(ROOT)}:{line}: {what}"
        for source in package_sources()
        if not is_in(source.path, *allowed_in)
        for line, what in rule(source)
    )


def test_only_store_writes_rows() -> None:
    found = broken(row_writes, allowed_in=("store",))
    assert not found, (
        "Rows are written outside store/. Write a verb in store/ (one verb, one transaction, the "
        f"fence in its WHERE), give it a method in api/, and call that:\n{found}"
    )


def test_only_store_opens_transactions_locks_and_cursors() -> None:
    found = broken(database_control, allowed_in=("store",))
    assert not found, (
        "Transactions, row locks and cursors belong to a verb in store/. Move the statements "
        f"there and call the verb:\n{found}"
    )


def test_only_vendor_files_ask_which_database_it_is() -> None:
    found = broken(vendor_reads, allowed_in=("store/vendors", "checks", "models/fields.py"))
    assert not found, (
        "Code asks which database it runs on. Put the difference behind a primitive in "
        f"store/vendors/, one form per vendor, and call the primitive:\n{found}"
    )


def test_only_vendor_files_and_worker_connections_reach_for_connections() -> None:
    found = broken(
        lambda source: uses_of(source, CONNECTIONS),
        allowed_in=("store/vendors", "checks", "worker/connections.py"),
    )
    assert not found, (
        "django.db connections are taken outside store/vendors/. Pass the alias on (Scope.using) "
        "and let a vendor primitive take the connection; opening and closing around jobs belongs "
        f"to worker/connections.py:\n{found}"
    )


def test_core_and_store_read_no_clock() -> None:
    def clocks(source: Source) -> Iterable[Finding]:
        return uses_of(source, WALL_CLOCKS) if is_in(source.path, "core", "store") else ()

    def stopwatches(source: Source) -> Iterable[Finding]:
        return uses_of(source, STOPWATCHES) if is_in(source.path, "core", "store") else ()

    # An embedded database has no other clock than its machine's; a vendor's wait has a deadline.
    found = broken(clocks, allowed_in=("store/ids.py", "store/vendors/sqlite.py"))
    found += broken(stopwatches, allowed_in=("store/ids.py", "store/vendors"))
    assert not found, (
        "core/ and store/ read no clock. Take `now` as an argument; where the database is to "
        f"judge, the caller passes Now():\n{found}"
    )


def test_no_module_is_a_drawer() -> None:
    found = [
        str(path.relative_to(ROOT))
        for folder in (PACKAGE, ROOT / "tests")
        for path in sorted(folder.rglob("*.py"))
        if NAMELESS & {path.stem, path.parent.name}
    ]
    assert not found, (
        "Modules need a name that says what is in them. Move each function to the module of the "
        f"thing it is about: {found}"
    )


def test_files_stay_short() -> None:
    lengths = {
        str(source.path.relative_to(ROOT)): source.text.count("\n") for source in package_sources()
    }
    found = {path: lines for path, lines in lengths.items() if lines > LONGEST_FILE}
    assert not found, (
        f"Files over {LONGEST_FILE} lines. A file does one thing: split it where its first "
        f"sentence would need an `and`: {found}"
    )


def test_functions_stay_short() -> None:
    found = broken(lambda source: long_functions(source, LONGEST_FUNCTION), allowed_in=())
    assert not found, (
        f"Functions over {LONGEST_FUNCTION} lines without their docstring (aim: under 40). Take "
        f"steps out into functions with names of their own, below, in calling order:\n{found}"
    )


def test_every_module_says_its_job() -> None:
    found = [
        str(source.path.relative_to(ROOT))
        for source in package_sources()
        if source.text.strip() and not source.docstring
    ]
    assert not found, f"Modules without a docstring. Say each one's job in a sentence: {found}"


def test_top_level_holds_nothing_else() -> None:
    git = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout, so what is ours and what a tool left cannot be told apart")
    names = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    found = sorted(name for name in names - TOP_LEVEL if not name.startswith("."))
    assert not found, (
        "The top level holds six names, Makefile, LICENSE and dotfiles. Move these into one of "
        f"{sorted(TOP_LEVEL)}: {found}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "def f(job):\n    job.save()",
        "async def f(job):\n    await job.asave(update_fields=['status'])",
        "def f(queryset):\n    queryset.update(status='dead')",
        "def f(self, request, queryset: QuerySet[Job]):\n    queryset.delete()",
        "from flexiq_django.models import Job\nJob.objects.create()",
        "from flexiq_django import models\nmodels.Job.objects.filter(pk=1).update(status='dead')",
        "from flexiq_django.models import Job\ndef f():\n    job = Job(pk=1)\n    job.delete()",
        "from ..models import job\ndef f(row: job.Job):\n    row.delete()",
        "from ..models import Job\ndef f():\n    Job.objects.get(pk=1).delete()",
        "def f():\n    for job in get_model('x.Job').objects.all():\n        job.delete()",
        "def f():\n    done = jobs.exclude(status='dead')\n    done.using('other').delete()",
        "def f():\n    if (job := Job.objects.first()):\n        job.delete()",
        "ROWS = Job.objects.all()\ndef f():\n    ROWS.delete()",
        "def f(job):\n    job.children_set.create()",
        "async def f():\n    job = await Job.objects.aget(pk=1)\n    await job.adelete()",
        "def f(a):\n    Job.objects.bulk_create(a)",
        "class A:\n    def f(self, request, obj):\n        super().save_model(request, obj)",
    ],
)
def test_row_writes_are_found(text: str) -> None:
    assert list(row_writes(snippet(text)))


@pytest.mark.parametrize(
    "text",
    [
        "context = {}\ncontext.update(title='x')",
        "def f():\n    seen = set()\n    seen.update([1])",
        "import hashlib\ndigest = hashlib.sha256()\ndigest.update(b'x')",
        "def f(job):\n    job.metadata.update(a=1)",
        "from ..models import Job\ndef f(job: Job):\n    job.metadata.update(a=1)",
        "def f(rows: dict[str, int]):\n    rows.update(a=1)",
        "def f(queue):\n    queue.delete(job_id=1)\n    queue.dead_letters.delete(1)",
        "def f(client):\n    client.delete('/jobs/1')",
        "def f():\n    data = Job.objects.filter()\ndef g():\n    data = {}\n    data.update(a=1)",
        "def f(progress_bar, executor):\n    progress_bar.update(1)\n    executor.create(2)",
        "def f(counts):\n    counts.values().update()",
    ],
)
def test_other_updates_and_deletes_are_left_alone(text: str) -> None:
    assert not list(row_writes(snippet(text)))


@pytest.mark.parametrize(
    "text",
    [
        "from django.db import transaction\nwith transaction.atomic(using='x'):\n    pass",
        "from django.db.transaction import atomic\n@atomic\ndef f():\n    pass",
        "import django.db.transaction as t\nt.savepoint()",
        "def f(connection):\n    with connection.cursor() as cursor:\n        pass",
        "Job.objects.select_for_update(skip_locked=True)",
    ],
)
def test_database_control_is_found(text: str) -> None:
    assert list(database_control(snippet(text)))


@pytest.mark.parametrize(
    "text",
    [
        "from ..core import cursor\nposition = cursor.decode('x')",
        "def f(page):\n    return page.cursor",
        "from django.db import transaction\ntransaction.on_commit(print)",
        "def f(operation):\n    return operation.atomic",
    ],
)
def test_other_cursors_and_commits_are_left_alone(text: str) -> None:
    assert not list(database_control(snippet(text)))


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.time()",
        "from time import time as clock\nclock()",
        "from datetime import datetime\nnow = datetime.now",
        "import datetime as dt\ndt.date.today()",
        "from django.utils import timezone\ndef f(clock=timezone.now):\n    pass",
    ],
)
def test_clocks_are_found(text: str) -> None:
    assert list(uses_of(snippet(text), WALL_CLOCKS))


@pytest.mark.parametrize(
    "text",
    [
        "from django.db.models.functions import Now\nNow()",
        "from datetime import datetime, timedelta\ndatetime.fromtimestamp(0) + timedelta(1)",
        "import time\ntime.monotonic()",
        "def f(time):\n    return time.time()",
    ],
)
def test_what_is_no_clock_is_left_alone(text: str) -> None:
    assert not list(uses_of(snippet(text), WALL_CLOCKS))


@pytest.mark.parametrize(
    "text",
    [
        "from django.db import connections\nconnections['default']",
        "import django.db\ndjango.db.connection.close()",
        "from django.db import transaction\ntransaction.get_connection('x')",
    ],
)
def test_connections_are_found(text: str) -> None:
    assert list(uses_of(snippet(text), CONNECTIONS))
