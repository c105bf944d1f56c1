"""The table of calls names every call, and only tests that there are."""

import re

from flexiq_django import Queue
from tests.docs.pages import DOCS
from tests.processes import ROOT

PAGE = DOCS / "reference" / "compatibility.md"
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", re.M)

#: The calls of the documents this package is built to.
_TEXT = """
    get_job list_jobs list_jobs_filtered list_jobs_after list_jobs_filtered_after cancel_job
    cancel_running_job update_progress job_errors job_dag archive list_archived list_archived_after
    replay replay_history set_queue_rate_limit set_queue_concurrency pause resume paused_queues
    purge revoke_task stats stats_by_queue stats_all_queues metrics metrics_timeseries dead_letters
    dead_letters_after retry_dead purge_dead delete_dead requeue_job purge_completed
    effective_retention dry_run_retention get_setting set_setting delete_setting list_settings
    set_setting_if migrate min_contract set_min_contract
"""
CALLS = set(_TEXT.split())


def test_every_call_is_there_and_has_its_row() -> None:
    rows = {name for name, _, _ in ROW.findall(PAGE.read_text())}

    assert rows >= CALLS
    for name in rows:
        assert callable(getattr(Queue, name))
        assert callable(getattr(Queue, f"a{name}"))


def test_the_tests_it_names_are_there_and_are_about_the_call() -> None:
    for name, tests, _ in ROW.findall(PAGE.read_text()):
        paths = re.findall(r"`(tests/[\w/.]+)`", tests)
        assert paths, name
        for path in paths:
            assert (ROOT / path).is_file(), path
        assert any(name in (ROOT / path).read_text() for path in paths), name
