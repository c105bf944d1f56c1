"""Names are compared byte for byte on every database."""

import pytest
from django.db import connections

from flexiq_django.models import Job, PeriodicTask, QueueState, Setting
from flexiq_django.models.fields import NameField
from flexiq_django.store import figures
from tests.factories import NOW, JobFactory, PeriodicTaskFactory, QueueStateFactory, at
from tests.store.acting import claim, enqueue_one

pytestmark = pytest.mark.django_db

# Each pair is one name for a collation that folds case, accents, width or composition.
LOOKALIKES = [
    ("mail", "Mail"),
    ("strasse", "straße"),
    ("cafe", "café"),
    ("caf\u00e9", "cafe\u0301"),
    ("a", "\uff41"),
    ("post", "post\u200b"),
    ("\U0001f4e7", "\U0001f4e8"),
]


@pytest.mark.parametrize(("one", "other"), LOOKALIKES)
def test_lookalikes_are_two_names(one: str, other: str) -> None:
    first = JobFactory(queue=one, task_name=one)
    JobFactory(queue=other, task_name=other)
    QueueStateFactory(name=one)
    QueueStateFactory(name=other)
    PeriodicTaskFactory(name=one)
    PeriodicTaskFactory(name=other)
    Setting.objects.create(key=one, value="1", updated_at=NOW)
    Setting.objects.create(key=other, value="2", updated_at=NOW)

    assert [job.id for job in Job.objects.filter(queue=one)] == [first.id]
    assert [job.id for job in Job.objects.filter(task_name__in=[one])] == [first.id]
    assert QueueState.objects.get(name=other).name == other
    assert PeriodicTask.objects.get(name=one).name == one
    assert Setting.objects.get(key=other).value == "2"
    assert set(figures.stats_by_queue(at())) == {one, other}


@pytest.mark.parametrize(("one", "other"), LOOKALIKES)
def test_a_claim_and_a_pause_tell_them_apart(one: str, other: str) -> None:
    first = enqueue_one(queue=one)
    second = enqueue_one(queue=other)
    QueueStateFactory(name=one)

    assert [job.id for job in claim(queues=[one])] == []
    assert [job.id for job in claim(queues=[other])] == [second]
    QueueState.objects.all().delete()
    assert [job.id for job in claim(queues=[one])] == [first]


def test_names_come_back_as_they_were_given() -> None:
    for name in {name for pair in LOOKALIKES for name in pair}:
        job = JobFactory(queue=name)
        assert Job.objects.get(id=job.id).queue == name


def test_mariadb_gets_a_binary_collation(vendor: str) -> None:
    column = Job._meta.get_field("queue")

    assert isinstance(column, NameField)
    found = column.db_parameters(connections["default"]).get("collation")
    assert found == ("utf8mb4_bin" if vendor == "mysql" else None)
