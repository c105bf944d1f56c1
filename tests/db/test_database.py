"""open_database: the alias and its tables are looked at before anything else."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, connections

from flexiq_django import Queue
from flexiq_django import db as jobs
from flexiq_django.exceptions import (
    ConfigurationError,
    ContractError,
    InvalidOptionError,
    JobNotFoundError,
)
from flexiq_django.models import Setting
from tests.factories import NOW


@pytest.fixture
def empty_file(tmp_path: Any, django_db_blocker: Any) -> Iterator[str]:
    """The alias of an SQLite file that holds nothing."""
    alias = "fresh"
    connections.settings[alias] = {
        **connections.settings[DEFAULT_DB_ALIAS],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(tmp_path / "fresh.sqlite3"),
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
    }
    with django_db_blocker.unblock():
        yield alias
        connections[alias].close()
    delattr(connections._connections, alias)
    del connections.settings[alias]


@pytest.mark.django_db
def test_what_is_not_given_comes_from_the_settings(settings: Any) -> None:
    settings.FLEXIQ = {"NAMESPACE": "shop", "DEPLOYMENT_ID": "blue"}

    opened = jobs.open_database()
    assert (opened.using, opened.namespace, opened.deployment_id) == ("default", "shop", "blue")
    assert opened == jobs.open_database("default", "shop", deployment_id="blue")
    assert opened.queue.scope == opened.scope


def test_an_alias_that_is_not_there() -> None:
    with pytest.raises(ConfigurationError, match="there is no database 'jobs'; DATABASES has def"):
        jobs.open_database("jobs")


def test_a_database_without_the_tables(empty_file: str) -> None:
    with pytest.raises(ConfigurationError, match=r"'fresh' lacks .* 0001_initial .*run"):
        jobs.open_database(empty_file)
    Queue(using=empty_file).migrate()
    assert jobs.open_database(empty_file).using == empty_file


@pytest.mark.django_db
def test_a_database_for_newer_builds_and_bad_names() -> None:
    with pytest.raises(InvalidOptionError, match="namespace is ''"):
        jobs.open_database(namespace="")
    with pytest.raises(InvalidOptionError, match="deployment_id is ' '"):
        jobs.open_database(deployment_id=" ")
    Setting.objects.create(key="contract:min_sdk", value="99", updated_at=NOW)
    with pytest.raises(ContractError, match="level 99"):
        jobs.open_database()


@pytest.mark.django_db
def test_namespaces_see_nothing_of_each_other() -> None:
    ours, theirs = jobs.open_database(), jobs.open_database(namespace="theirs")
    job_id = jobs.insert_job(ours, 1)

    assert jobs.claim(theirs, "me") is None
    assert jobs.get_next_pending(theirs) is None
    assert jobs.mark_processing(theirs, job_id) is None
    assert jobs.get_job(theirs, job_id) is jobs.get_job_details(theirs, job_id) is None
    assert jobs.get_attempt_count(theirs, job_id) is None
    assert jobs.list_all_jobs(theirs) == []
    assert sum(jobs.count_by_status(theirs).values()) == 0
    assert not jobs.update_priority(theirs, job_id, 1)
    assert not jobs.update_canonical_lineage(theirs, job_id, trial_id="t")
    with pytest.raises(JobNotFoundError):
        jobs.cancel_job(theirs, job_id)
    claim = jobs.claim(ours, "me")
    assert claim is not None
    assert not jobs.mark_completed(theirs, job_id)
    assert jobs.requeue_interrupted(theirs, "me") == 0
    assert jobs.mark_completed(ours, job_id)
    assert jobs.prune_old_jobs(theirs, 0) == 0
    assert jobs.get_job(ours, job_id) is not None
