"""The table of calls names every call, and only tests that there are."""

import re

from flexiq_django import JobResult, Queue, Task, current_job
from tests.docs.pages import DOCS
from tests.processes import ROOT

PAGE = DOCS / "reference" / "compatibility.md"
ROW = re.compile(r"^\| `([\w.]+)` \| (.*?) \| (.*?) \|$", re.M)

#: Whose method a row is about, by what stands before the dot.
OWNERS = {"": Queue, "task": Task, "job": JobResult, "current_job": type(current_job)}
#: These declare something and ask no database.
NO_TWINS = {"task", "periodic"}

#: The calls of the documents this package is built to.
_TEXT = """
    get_job list_jobs list_jobs_filtered list_jobs_after list_jobs_filtered_after cancel_job
    cancel_running_job update_progress job_errors job_dag archive list_archived list_archived_after
    replay replay_history set_queue_rate_limit set_queue_concurrency pause resume paused_queues
    purge revoke_task stats stats_by_queue stats_all_queues metrics metrics_timeseries dead_letters
    dead_letters_after retry_dead purge_dead delete_dead requeue_job purge_completed
    effective_retention dry_run_retention get_setting set_setting delete_setting list_settings
    set_setting_if migrate min_contract set_min_contract periodic enqueue enqueue_many task.delay
    task.apply_async task.map current_job.log current_job.check_cancelled
"""
CALLS = set(_TEXT.split())


def test_every_call_is_there_and_has_its_row() -> None:
    rows = {name for name, _, _ in ROW.findall(PAGE.read_text())}

    assert rows >= CALLS
    for row in rows:
        prefix, _, name = row.rpartition(".")
        assert callable(getattr(OWNERS[prefix], name)), row
        if prefix != "current_job" and name not in NO_TWINS:
            assert callable(getattr(OWNERS[prefix], f"a{name}")), row


def test_the_tests_it_names_are_there_and_are_about_the_call() -> None:
    for row, tests, _ in ROW.findall(PAGE.read_text()):
        name = row.rpartition(".")[2]
        paths = re.findall(r"`(tests/[\w/.]+)`", tests)
        assert paths, row
        for path in paths:
            assert (ROOT / path).is_file(), path
        assert any(name in (ROOT / path).read_text() for path in paths), row
