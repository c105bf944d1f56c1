"""The example project as its user runs it: manage.py in processes, on a database of its own.

Above all: whenever its worker is killed, each row of the file is in the table exactly once, with
one report, one mail and one dead letter.
"""

import csv
import itertools
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import airportsdata
import environ
import pytest
from django.db.utils import ConnectionHandler

from flexiq_django.models import Job
from tests.conftest import configured_vendor
from tests.processes import ROOT, WorkerProcess
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.slow, pytest.mark.timeout(300)]

PROJECT = ROOT / "example_project"
AIRPORTS = Path(airportsdata.__file__).with_name("airports.csv")

#: Each round is another moment of death. The database matters less, and most rounds cost no server.
KILLED_ROUNDS = 10 if configured_vendor() == "sqlite3" else 4
SLICE = 3000
CHUNK = 50
#: After a SIGKILL a new worker gets the jobs back only when lease and leadership have run out.
RECOVERY_SECONDS = 120.0

FACTS = """
import json
from airports.models import Airport, Import
from airports.progress import progress_of
from flexiq_django import queue
run = Import.objects.latest("id")
progress = progress_of(run)
jobs = queue.list_jobs(limit=10_000)
print("FACTS" + json.dumps({
    "stage": progress.stage,
    "total_rows": run.total_rows,
    "rows": list(Airport.objects.filter(run=run).values_list("row", "name", "lat", "lon")),
    "jobs": sorted(job.task_name.rpartition(".")[2] for job in jobs),
    "statuses": sorted({(job.task_name.rpartition(".")[2], job.status) for job in jobs}),
    "dead": [(letter["task_name"], letter["metadata"]) for letter in queue.dead_letters(100)],
    "label": run.label,
    "gaps": run.counts.get("gaps"),
    "report": run.report,
    "error": progress.error,
}))
"""


class Example:
    """The example project on one database, with a folder for what it writes."""

    def __init__(self, url: str, folder: Path, *, chunk_rows: int = CHUNK) -> None:
        self.folder = folder
        self.var = folder / "var"
        self.environment = {
            "AIRPORTS_CHUNK_ROWS": str(chunk_rows),
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "EXAMPLE_VAR_DIR": str(self.var),
            "FLEXIQ_LOCK_GRACE_SECONDS": "3",
            "FLEXIQ_STOP_TIMEOUT_SECONDS": "2",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(PROJECT)]),
            "PYTHONUNBUFFERED": "1",
        }
        self._connections = ConnectionHandler({"default": environ.Env.db_url_config(url)})
        self._workers: list[WorkerProcess] = []

    def command(self, *arguments: str) -> list[str]:
        """The command line of manage.py."""
        return [sys.executable, str(PROJECT / "manage.py"), *arguments]

    def manage(self, *arguments: str, exit_code: int = 0) -> str:
        """Run manage.py to its end; all that it printed."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=200,
        )
        assert done.returncode == exit_code, done.stdout
        return done.stdout

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Run manage.py beside the test. The caller ends it."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def start_worker(self, *arguments: str) -> WorkerProcess:
        """A worker of the example project."""
        log_path = self.folder / f"worker-{len(self._workers) + 1}.log"
        worker = WorkerProcess(*arguments, log_path=log_path, environment=self.environment)
        self._workers.append(worker)
        return worker

    def run_all_jobs(self) -> None:
        """Run a worker until every job has ended."""
        worker = self.start_worker()
        worker.wait_for_log("worker .* started")  # before that a SIGTERM just ends the process
        self.wait_for_end(worker)
        assert worker.terminate() == 0, worker.log_tail()

    def wait_for_end(self, worker: WorkerProcess) -> None:
        """Return when no job is left to run. AssertionError if that takes too long."""

        def ended() -> bool:
            assert worker.exit_code is None, worker.log_tail()
            return self.unfinished_jobs() == 0

        wait_until(ended, RECOVERY_SECONDS, f"the end of all jobs; see {worker.log_path}")

    def unfinished_jobs(self) -> int:
        """How many jobs have not ended."""
        return self._count(
            f"SELECT COUNT(*) FROM {Job._meta.db_table} WHERE status IN ('pending', 'running')"
        )

    def rows_in_table(self) -> int:
        """How many airports there are."""
        return self._count("SELECT COUNT(*) FROM airports_airport")

    def facts(self) -> dict[str, Any]:
        """What the project itself knows of its latest import."""
        printed = self.manage("shell", "-v", "0", "-c", FACTS)
        found: dict[str, Any] = json.loads(printed.rpartition("FACTS")[2])
        return found

    def mails(self) -> list[str]:
        """The mails sent."""
        texts = (path.read_text() for path in (self.var / "mail").glob("*.log"))
        return [mail for text in texts for mail in re.split(r"^-{79}\n", text, flags=re.M) if mail]

    def files(self, pattern: str) -> list[Path]:
        """Files among uploads and reports."""
        return sorted((self.var / "media").glob(pattern))

    def close(self) -> None:
        """Leave no process and no connection behind; show the logs of a failed test."""
        for worker in self._workers:
            worker.kill()
            print(f"--- {worker.log_path.name} ({worker.exit_code})\n{worker.log_tail()}")  # noqa: T201
        self._connections.close_all()

    def _count(self, statement: str) -> int:
        with self._connections["default"].cursor() as cursor:
            cursor.execute(statement)
            (count,) = cursor.fetchone()
            return int(count)


@pytest.fixture
def database_url(tmp_path: Path, django_db_blocker: Any) -> Iterator[str]:
    """An empty database on the server under test, for this test alone."""
    url = os.environ.get("FLEXIQ_TEST_DATABASE_URL") or "sqlite://:memory:"
    config = environ.Env.db_url_config(url)
    if config["ENGINE"].endswith("sqlite3"):
        with django_db_blocker.unblock():
            yield f"sqlite:///{tmp_path / 'example.sqlite3'}"
        return
    is_postgres = config["ENGINE"].endswith("postgresql")
    server = ConnectionHandler({"default": {**config, "NAME": "postgres" if is_postgres else ""}})
    name = f"flexiq_example_{uuid4().hex[:12]}"
    with django_db_blocker.unblock():
        with server["default"].cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}" + ("" if is_postgres else " CHARSET utf8mb4"))
        yield urlsplit(url)._replace(path=f"/{name}").geturl()
        with server["default"].cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}" + (" WITH (FORCE)" if is_postgres else ""))
        server.close_all()


@pytest.fixture
def make_example(database_url: str, tmp_path: Path) -> Iterator[Callable[..., Example]]:
    """Make the example project, migrated or not."""
    made: list[Example] = []

    def make(*, is_migrated: bool = True, **options: Any) -> Example:
        example = Example(database_url, tmp_path, **options)
        made.append(example)
        if is_migrated:
            example.manage("migrate", "-v", "0")
        return example

    yield make
    for example in made:
        example.close()


def write_slice(folder: Path, rows: int) -> Path:
    """The first rows of the real file."""
    path = folder / "slice.csv"
    with AIRPORTS.open(encoding="utf-8") as file:
        path.write_text("".join(itertools.islice(file, rows + 1)), encoding="utf-8")
    return path


def rows_of(path: Path) -> list[list[Any]]:
    """What the table should hold of a file, read without any code of the example."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            [number, row["name"].strip(), float(row["lat"]), float(row["lon"])]
            for number, row in enumerate(csv.DictReader(file), start=1)
        ]


def assert_imported_once(example: Example, path: Path) -> None:
    """Every row, every job, the report, the mail and the dead letter: each once."""
    facts = example.facts()
    expected = rows_of(path)
    assert len(facts["rows"]) == len(expected) == facts["total_rows"]
    assert sorted(facts["rows"]) == expected
    assert facts["stage"] == "done"
    chunks = -(-len(expected) // CHUNK)
    assert facts["jobs"] == sorted(
        ["split_file", "draw_report", "mail_summary", "import_deliberately_corrupted_chunk"]
        + ["import_chunk"] * chunks
    )
    assert facts["dead"] == [["airports.tasks.import_deliberately_corrupted_chunk", facts["label"]]]
    assert all(
        status == ("dead" if "corrupted" in task else "complete")
        for task, status in facts["statuses"]
    )
    assert [path.name for path in example.files("reports/*/*")] == ["map.svg", "summary.txt"]
    (mail,) = example.mails()
    assert f"{len(expected):,} of {len(expected):,} rows are imported" in mail


def kill_at_a_random_moment(example: Example, worker: WorkerProcess, rows: int) -> str:
    """SIGKILL somewhere between now and the end of the import; says when."""
    goal = random.randint(example.rows_in_table(), rows)
    pause = random.uniform(0.0, 0.3)
    worker.wait_for_log(r"worker \S+ started")
    # Where the rest can only begin when a lease has run out, the goal may be far: then now will do.
    give_up = time.monotonic() + random.uniform(1.0, 8.0)
    wait_until(
        lambda: example.rows_in_table() >= goal or time.monotonic() > give_up, 30, f"{goal} rows"
    )
    moment = time.monotonic() + pause
    wait_until(lambda: time.monotonic() >= moment, 30, "a random moment")
    assert worker.exit_code is None, worker.log_tail()
    worker.kill()
    return f"killed with {example.rows_in_table()} rows (goal {goal}, then {pause:.3f} s)"


@pytest.mark.parametrize("number", range(1, KILLED_ROUNDS + 1))
def test_each_row_arrives_once_however_the_worker_is_killed(
    make_example: Callable[..., Example], tmp_path: Path, number: int
) -> None:
    example = make_example()
    path = write_slice(tmp_path, SLICE)
    example.manage("import_airports", str(path), "--corrupted-copy")

    for _ in range(random.randint(1, 3)):
        worker = example.start_worker("--concurrency", str(random.choice([1, 2, 8])))
        print(kill_at_a_random_moment(example, worker, SLICE))  # noqa: T201 - shown on failure
    example.run_all_jobs()

    assert_imported_once(example, path)


@pytest.mark.mechanics
def test_the_demo_runs_again_and_again(
    make_example: Callable[..., Example], tmp_path: Path
) -> None:
    example = make_example(is_migrated=False, chunk_rows=500)
    rows = f"{len(rows_of(AIRPORTS)):,}"

    first = example.manage("demo")
    assert re.search(rf"In the file: +{rows}\n +In the table: +{rows} +equal\n", first), first
    assert "No user was created: this is not the demo's own database" in first
    assert "import_deliberately_corrupted_chunk, 3 attempts" in first
    assert "BadRowError: Row 1: lat is 'corrupted on purpose'" in first
    assert "exit code 0" in first

    second = example.manage("demo", "--csv", str(write_slice(tmp_path, 700)), "--workers", "2")
    assert "1 earlier import" in second
    assert re.search(r"In the table: +700 +equal\n", second), second
    assert second.count("3 attempts") == 1, "only the dead letter of this import is shown"
    assert "completed 65, failed 0, dead 2" in second
    assert len(example.mails()) == 2


@pytest.mark.mechanics
def test_the_demo_with_ctrl_c_leaves_no_worker(make_example: Callable[..., Example]) -> None:
    example = make_example()
    demo = example.start("demo")
    assert demo.stdout is not None
    lines = iter(demo.stdout.readline, "")
    (pid,) = next(
        found for line in lines if (found := re.findall(r"flexiq_worker, pid (\d+)", line))
    )
    next(line for line in lines if "importing" in line)

    demo.send_signal(signal.SIGINT)
    rest, _ = demo.communicate(timeout=60)

    assert demo.returncode == 130, rest
    assert "Stopped. The worker is gone" in rest
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "The first line is empty"),
        (b"name,latitude\nA,1\n", "There is no column lon. Needed are name, lat, lon"),
        (b"name,lat,latitude,lon\nA,1,1,1\n", "Two columns mean the same thing: lat."),
        (b"name,lat,lon\n", "There is a header, but no row below it."),
        (b"name,lat,lon\nA,91,1\n", "Row 1: lat is '91'; it must be from -90 to 90."),
        (b"name,lat,lon\nA,1\n", "Row 1 has 2 fields; the first line names 3."),
        ("name,lat,lon\nZürich,1,1\n".encode("latin-1"), "Byte 14 is not UTF-8."),
        (b"PK\x03\x04\x00\x00name,lat,lon\n1,1,1", "This is not a text file."),
    ],
)
@pytest.mark.mechanics
def test_a_file_that_cannot_be_imported_is_refused(
    make_example: Callable[..., Example], tmp_path: Path, content: bytes, complaint: str
) -> None:
    example = make_example(is_migrated=False)
    path = tmp_path / "bad.csv"
    path.write_bytes(content)

    printed = example.manage("import_airports", str(path), exit_code=1)

    assert complaint in printed
    assert "Traceback" not in printed
    assert example.files("uploads/*") == []


@pytest.mark.mechanics
def test_a_file_of_another_publisher(make_example: Callable[..., Example], tmp_path: Path) -> None:
    example = make_example(chunk_rows=2)
    path = tmp_path / "others.csv"
    path.write_bytes(
        "\ufeffIdent;Name;Latitude_Deg;LONGITUDE_DEG;Elevation_Ft;ISO_Country\r\n"
        "1;Zürich;47.46;8.55;1416;CH\r\n"
        '2;"two\r\nlines; and a ""quote""";-1.5;2;;\r\n'
        "\r\n"
        "3;東京;35.55;139.78;21;JP\r\n".encode()
    )
    example.manage("import_airports", str(path))

    example.run_all_jobs()

    facts = example.facts()
    assert facts["stage"] == "done"
    assert sorted(facts["rows"]) == [
        [1, "Zürich", 47.46, 8.55],
        [2, 'two\r\nlines; and a "quote"', -1.5, 2.0],
        [3, "東京", 35.55, 139.78],
    ]


@pytest.mark.mechanics
def test_a_bad_row_costs_its_chunk_and_is_reported(
    make_example: Callable[..., Example], tmp_path: Path
) -> None:
    example = make_example(chunk_rows=2)
    path = tmp_path / "mixed.csv"
    path.write_text("name,lat,lon\nA,1,1\nB,2,2\nC,3,3\nD,four,4\nE,5,5\n")
    example.manage("import_airports", str(path))

    example.run_all_jobs()

    facts = example.facts()
    assert facts["stage"] == "done, with gaps"
    assert [name for _, name, _, _ in sorted(facts["rows"])] == ["A", "B", "E"]
    assert facts["gaps"] == [
        [
            "rows 3 to 4",
            "airports.csv_files.BadRowError: Row 4: lat is 'four'; it must be from -90 to 90.",
        ]
    ]
    (mail,) = example.mails()
    assert "3 of 5 rows are imported" in mail


class Browser:
    """As much of a browser as the page needs: cookies, a form, errors that can be read."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._cookies = CookieJar()
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(self._cookies)
        )

    def get(self, path: str) -> tuple[int, str, Mapping[str, str]]:
        """Status, text and headers of a page."""
        return self._open(urllib.request.Request(self.address + path))  # noqa: S310 - our server

    def is_there(self) -> bool:
        """Whether the server answers yet."""
        try:
            return self.get("/")[0] == 200
        except urllib.error.URLError:
            return False

    def upload(self, content: bytes, *, has_token: bool = True) -> tuple[int, str]:
        """Send the form of the page."""
        token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', self.get("/")[1])
        assert token is not None
        fields = {"has_corrupted_copy": "on"}
        if has_token:
            fields["csrfmiddlewaretoken"] = token[1]
        head = "".join(
            f'--edge\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        )
        head += '--edge\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        request = urllib.request.Request(  # noqa: S310
            self.address + "/",
            data=head.encode() + content + b"\r\n--edge--\r\n",
            headers={"Content-Type": "multipart/form-data; boundary=edge"},
        )
        status, text, _ = self._open(request)
        return status, text

    def _open(self, request: urllib.request.Request) -> tuple[int, str, Mapping[str, str]]:
        try:
            with self._opener.open(request, timeout=30) as answer:
                return answer.status, answer.read().decode(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(), dict(error.headers)


@pytest.fixture
def serve() -> Iterator[Callable[[Example], Browser]]:
    """Serve the pages of the example; a browser that shows them."""
    servers: list[subprocess.Popen[str]] = []

    def start(example: Example) -> Browser:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        servers.append(example.start("runserver", "--noreload", str(port)))
        browser = Browser(f"http://127.0.0.1:{port}")
        wait_until(browser.is_there, 30, "an answer of the server")
        return browser

    yield start
    for server in servers:
        server.kill()
        server.communicate()


@pytest.mark.mechanics
def test_the_page(
    make_example: Callable[..., Example], serve: Callable[[Example], Browser], tmp_path: Path
) -> None:
    example = make_example()
    browser = serve(example)
    status, page, headers = browser.get("/")
    assert status == 200
    assert "No worker is running" in page
    assert headers["Content-Security-Policy"].startswith("default-src 'self'")
    assert "<style" not in page
    assert not re.search(r"<script(?![^>]* src=)| style=| on\w+=", page), "nothing inline"

    content = write_slice(tmp_path, 200).read_bytes()
    assert browser.upload(content, has_token=False)[0] == 403
    status, page = browser.upload(b"name,lat\nA,1\n")
    assert (status, "There is no column lon" in page) == (422, True)
    status, page = browser.upload(content)
    assert (status, "a.csv is enqueued as import" in page) == (200, True)

    (waiting,) = json.loads(browser.get("/progress.json")[1])["imports"]
    assert waiting["stage"] == "waiting for a worker"
    assert browser.get(f"/imports/{waiting['id']}/map.svg")[0] == 404
    assert browser.get(f"/imports/{waiting['id']}/")[0] == 200
    example.run_all_jobs()
    (done,) = json.loads(browser.get("/progress.json")[1])["imports"]
    assert (done["stage"], done["percent"], done["has_ended"]) == ("done", 100, True)
    assert done["corrupted"].startswith("dead letter: ")

    status, page, _ = browser.get(f"/imports/{done['id']}/")
    assert (status, "3 attempts failed" in page) == (200, True)
    status, drawing, headers = browser.get(f"/imports/{done['id']}/map.svg")
    assert (status, headers["Content-Type"]) == (200, "image/svg+xml")
    assert "200 airports" in drawing
    assert "200 of 200 rows" in browser.get(f"/imports/{done['id']}/summary.txt")[1]
    assert browser.get("/admin/login/")[0] == 200


@pytest.mark.mechanics
def test_the_nightly_archive_is_scheduled_and_runs(make_example: Callable[..., Example]) -> None:
    example = make_example()
    script = (
        "from flexiq_django import queue;"
        "from airports.tasks import archive_finished_jobs as job;"
        "job.delay();"
    )
    example.manage("shell", "-v", "0", "-c", script)
    example.run_all_jobs()

    printed = example.manage(
        "shell",
        "-v",
        "0",
        "-c",
        "from flexiq_django import queue;"
        "(row,) = queue.list_periodic();"
        "print(row['name'], '|', row['cron_expr'], '|', queue.list_jobs()[0].status)",
    )

    assert "archive finished jobs | 0 2 * * * | complete" in printed
