"""What people are told to write when they manage jobs, written and run against a real worker."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flexiq_django import Queue, Retention, current_job
from flexiq_django.api.windows import windows_of
from flexiq_django.models import Job, PeriodicTask, TaskMetric
from flexiq_django.scheduler.periodic import Periodic
from flexiq_django.scheduler.sweeping import RetentionSweep
from flexiq_django.worker.catalogue import Catalogue
from tests.conformance.ours import Ours
from tests.waiting import wait_until

pytestmark = [pytest.mark.flows, pytest.mark.django_db(transaction=True)]

DAY = 86_400


@pytest.fixture
def bench() -> Ours:
    return Ours()


@pytest.fixture
def queue(bench: Ours) -> Queue:
    return bench.make()


def test_cancelling_a_pending_job(queue: Queue) -> None:
    @queue.task
    def send_email(to: str, subject: str, body: str) -> None: ...

    job = send_email.delay("user@example.com", "Hello", "World")

    assert queue.cancel_job(job.id) is True
    assert queue.cancel_job(job.id) is False


def test_cleaning_up_by_hand(bench: Ours, queue: Queue) -> None:
    done = queue.enqueue("ok")
    dead = queue.enqueue("bad", max_retries=0)
    bench.run(queue)

    assert queue.purge_completed(older_than=3600) == 0
    assert queue.purge_dead(older_than=86400) == 0
    assert queue.purge_completed(older_than=-1) == 1
    assert queue.purge_dead(older_than=-1) == 1
    assert queue.get_job(done.id) is queue.get_job(dead.id) is None
    assert queue.job_errors(dead.id) == []
    assert not TaskMetric.objects.filter(job_id__in=[done.id, dead.id]).exists()


def test_windows_for_some_tables(bench: Ours) -> None:
    queue = bench.make(
        retention=Retention(archived_jobs=604_800, dead_letter=2_592_000, task_logs=259_200)
    )

    windows = queue.dry_run_retention().windows

    assert windows["archived_jobs"] == 7 * DAY * 1000
    assert windows["job_errors"] is None


def test_opting_out_and_the_older_form(bench: Ours) -> None:
    assert bench.make(retention=Retention()).dry_run_retention().enabled is False
    legacy = bench.make(result_ttl=3600).dry_run_retention()
    assert set(legacy.windows.values()) == {3_600_000}


def test_the_policy_is_known_once_a_worker_has_swept(queue: Queue) -> None:
    assert queue.effective_retention() is None

    sweep = RetentionSweep(queue.scope, lambda verb: verb(), windows_of(queue.scope))
    sweep.run()

    policy = queue.effective_retention()
    assert policy is not None
    assert (policy.enabled, policy.defaulted) == (True, True)
    assert policy.windows["task_logs"] == 3 * DAY * 1000


def test_a_job_with_a_lifetime_of_its_own_goes_with_its_records(bench: Ours, queue: Queue) -> None:
    @queue.task(name="resize_image", max_retries=0)
    def resize_image(path: str) -> None:
        raise OSError(path)

    job = resize_image.apply_async(args=("photo.jpg",), result_ttl=600)
    bench.run(queue)
    assert len(queue.job_errors(job.id)) == 1
    row = Job.objects.get(id=job.id)
    assert row.completed_at is not None
    assert row.purge_at is not None
    lifetime = row.purge_at - row.completed_at
    assert abs(lifetime - timedelta(seconds=600)) <= timedelta(milliseconds=1)  # SQLite rounds
    Job.objects.filter(id=job.id).update(purge_at=row.completed_at)  # ten minutes later

    sweep = RetentionSweep(queue.scope, lambda verb: verb(), windows_of(queue.scope))
    wait_until(lambda: bool(sweep.run()) and queue.get_job(job.id) is None, 30)

    assert queue.job_errors(job.id) == []
    assert not TaskMetric.objects.filter(job_id=job.id).exists()


def test_previewing_a_purge(bench: Ours, queue: Queue) -> None:
    queue.enqueue("ok")
    bench.run(queue)

    assert queue.dry_run_retention().total == 0
    preview = queue.dry_run_retention(Retention(archived_jobs=0))
    assert preview.counts["archived_jobs"] == preview.total == 1
    assert queue.stats()["completed"] == 1


def test_pausing_for_maintenance(bench: Ours, queue: Queue) -> None:
    names = ["default", "emails", "reports"]
    for name in names:
        queue.pause(name)
    assert queue.paused_queues() == names
    jobs = [queue.enqueue("ok", queue=name) for name in names]
    bench.run(queue)
    assert queue.stats()["pending"] == 3

    for name in names:
        queue.resume(name)
    bench.run(queue)

    assert [job.result(timeout=5) for job in jobs] == [1, 1, 1]


def test_archiving_and_browsing(bench: Ours, queue: Queue) -> None:
    queue.enqueue("ok")
    bench.run(queue)

    assert queue.archive(older_than=86400) == 0
    assert queue.archive(older_than=-1) == 1

    (job,) = queue.list_archived(limit=50, offset=0)
    assert (job.task_name, job.status) == ("ok", "complete")
    assert queue.stats()["completed"] == 0


def test_archiving_at_night(bench: Ours, settings: Any) -> None:
    settings.FLEXIQ = {**settings.FLEXIQ, "ARCHIVE_AFTER": None}  # else a worker may be faster
    queue = bench.make(retention=Retention())  # else it also deletes what is older than 7 days

    @queue.periodic(cron="0 0 2 * * *")  # daily at 2 AM
    def nightly_archival() -> int:
        archived = queue.archive(older_than=7 * DAY)
        current_job.log(f"Archived {archived} jobs")
        return archived

    old, young = queue.enqueue("ok"), queue.enqueue("ok")
    bench.run(queue)
    ended = datetime.now(UTC) - timedelta(days=8)
    Job.objects.filter(id=old.id).update(completed_at=ended)
    (row,) = queue.list_periodic()
    night = datetime.fromtimestamp(row["next_run"] / 1_000, UTC)
    assert (night.hour, night.minute, night.second) == (2, 0, 0)

    fired: list[int] = []
    PeriodicTask.objects.update(declared_at=night)  # as workers do every minute until then
    build = Catalogue(queue.scope).build
    Periodic(replace(queue.scope, now=night), lambda verb: verb(), build, fired.append).run()
    bench.run(queue)

    assert fired == [1]
    (job,) = queue.list_jobs(task_name=nightly_archival.name)
    assert job.result(timeout=5) == 1
    assert [line["message"] for line in queue.task_logs(job.id)] == ["Archived 1 jobs"]
    assert queue.list_archived() == [old]
    assert young in queue.list_jobs()
    (row,) = queue.list_periodic()
    assert row["next_run"] - row["last_run"] == DAY * 1_000


def test_revoking_and_purging(queue: Queue) -> None:
    queue.enqueue_many("ok", [()] * 3)
    queue.enqueue_many("bad", [()] * 2, queue="emails")

    assert queue.revoke_task("ok") == 3
    assert queue.purge("emails") == 2


def test_replaying(bench: Ours, queue: Queue) -> None:
    job = queue.enqueue("ok", args=(1, 2))
    bench.run(queue)

    new_job = queue.replay(job.id)

    (entry,) = queue.replay_history(job.id)
    assert entry["replay_job_id"] == new_job.id
    payloads: Any = Job.objects.filter(id__in=[job.id, new_job.id]).values_list("payload")
    assert len(set(payloads)) == 1


def test_retrying_what_is_dead(bench: Ours, queue: Queue) -> None:
    queue.enqueue("bad", max_retries=0)
    bench.run(queue)

    new_ids = [queue.retry_dead(entry["id"]) for entry in queue.dead_letters()]

    assert [queue.get_job(key).status for key in new_ids] == ["pending"]  # type: ignore[union-attr]
    assert queue.dead_letters() == []
