"""`immediate`, `at` and `travel` as decorators, and time for more than one queue."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import async_to_sync, iscoroutinefunction
from django.test import TestCase
from django.utils import timezone

from flexiq_django.testing import arun_pending, at, immediate, run_pending, travel
from tests.testapp.models import Mark
from tests.testing.tasks import lab, monthly, note, yearly

FAR = datetime(2040, 1, 1, tzinfo=UTC)


class AroundCoroutines(TestCase):
    """An ``async def`` test is awaited inside the block."""

    def test_a_decorated_coroutine_is_one_still(self) -> None:
        for around in (immediate(), at(FAR), travel(60)):

            @around
            async def fail() -> None:
                raise LookupError("reached")

            assert iscoroutinefunction(fail)
            with pytest.raises(LookupError, match="reached"):
                async_to_sync(fail)()

    @immediate()
    async def test_jobs_run_at_once(self) -> None:
        job = await note.adelay("a")
        await job.arefresh()
        assert job.status == "complete"

    @travel(3600)
    async def test_the_clock_has_moved(self) -> None:
        job = await note.adelay("a")
        await job.arefresh()
        assert job.created_at / 1000 > timezone.now().timestamp() + 3000

    @at(FAR)
    async def test_the_clock_stands(self) -> None:
        job = await note.adelay("a")
        await job.arefresh()
        assert job.created_at == FAR.timestamp() * 1000
        assert await arun_pending(queue=lab) == [job]

    def test_the_block_ends_with_each_call(self) -> None:
        @immediate()
        async def enqueue(key: str) -> str:
            job = await note.adelay(key)
            await asyncio.sleep(0)
            return str((await lab.aget_job(job.id)).status)

        assert [async_to_sync(enqueue)(key) for key in "ab"] == ["complete", "complete"]
        assert note.delay("c").status == "pending"

    @travel(3600)
    def test_functions_are_decorated_as_before(self) -> None:
        assert note.delay("a").created_at / 1000 > timezone.now().timestamp() + 3000


@pytest.mark.django_db
def test_each_queue_lives_through_a_journey_of_its_own() -> None:
    tomorrow = timezone.now().astimezone(UTC) + timedelta(days=1)
    with at(tomorrow.replace(hour=8, minute=45, second=0, microsecond=0)):
        run_pending(queue=lab)
        run_pending(queue=yearly)  # up to here
        Mark.objects.all().delete()
        with travel(3600):
            assert run_pending(queue=lab) == []
            assert [job.task_name for job in run_pending(queue=yearly)] == ["tests.half"]
            assert run_pending(queue=yearly) == []

    with travel(32 * 86_400):
        assert run_pending(queue=lab) == []
        assert [job.task_name for job in run_pending(queue=monthly)] in (
            ["tests.first"], ["tests.first"] * 2,
        )  # fmt: skip
