"""A worker's name is that of one boot."""

import os
import socket

import pytest

from flexiq_django.core.outcome import WORKER_LOST
from flexiq_django.store import journal, lease, settle
from flexiq_django.worker.identity import new_worker_id
from tests.factories import at
from tests.store.acting import claim_one, running, settlement, stored


def test_the_same_process_on_the_same_host_is_another_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 7)
    monkeypatch.setattr(socket, "gethostname", lambda: "pod-0")

    names = {new_worker_id() for _ in range(20)}

    assert len(names) == 20
    assert all(name.startswith("pod-0-7-") for name in names)


@pytest.mark.django_db
def test_even_under_the_same_name_an_earlier_boot_writes_nothing() -> None:
    before = running()
    lost, _ = settle.reap(
        at(3_600), lambda job: settlement(job, "pending", error=WORKER_LOST, wait_ms=0)
    )
    assert [each.job_id for each in lost] == [before.id]
    now = claim_one(at(3_600), worker_id="worker-1")
    assert now.id == before.id

    assert lease.renew(at(3_601), [(before.id, before.token)], lease_ms=60_000).owned == set()
    assert lease.release(at(3_601), [before]) == set()
    assert not journal.set_progress(at(3_601), before.id, before.token, 50)
    assert settle.settle(at(3_601), [settlement(before)]).lost == {before.id}
    row = stored(now.id)
    assert (row.status, row.token) == ("running", now.token)
