"""`immediate`, `at` and `travel` as decorators, and time for more than one queue."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
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


# --- generators, such as fixtures, and classes ----------------------------------------------------


@pytest.fixture
@travel(3600)
def an_hour_later() -> Iterator[datetime]:
    """The time, which has moved until the test has ended."""
    yield timezone.now()  # noqa: PT022 - the block lasts as long as the generator


@pytest.mark.django_db
def test_a_fixture_holds_the_block_open_around_the_test(an_hour_later: datetime) -> None:
    job = note.delay("a")

    assert job.created_at / 1000 >= an_hour_later.timestamp() + 3599


@pytest.mark.django_db
def test_a_generator_is_run_within_a_block_of_its_own() -> None:
    @immediate()
    def enqueue() -> Iterator[str]:
        yield note.delay("a").status
        yield note.delay("b").status

    assert list(enqueue()) == ["complete", "complete"]
    assert note.delay("c").status == "pending"


@pytest.mark.django_db(transaction=True)
def test_an_asynchronous_generator_too() -> None:
    @immediate()
    async def enqueue() -> AsyncIterator[str]:
        for key in "ab":
            job = await note.adelay(key)
            yield str((await lab.aget_job(job.id)).status)

    async def collect() -> list[str]:
        return [status async for status in enqueue()]

    assert async_to_sync(collect)() == ["complete", "complete"]
    assert note.delay("c").status == "pending"


@pytest.mark.django_db(transaction=True)
def test_what_goes_wrong_inside_an_asynchronous_block_reaches_the_generator() -> None:
    seen: list[str] = []

    @asynccontextmanager
    @at(FAR)
    async def opened() -> AsyncIterator[datetime]:
        try:
            yield FAR
        except LookupError as error:
            seen.append(str(error))
            raise
        finally:
            seen.append("closed")

    async def fail() -> None:
        async with opened():
            raise LookupError("inside")

    with pytest.raises(LookupError, match="inside"):
        async_to_sync(fail)()
    assert seen == ["inside", "closed"]


def test_a_class_is_refused() -> None:
    with pytest.raises(TypeError, match="Suite is a class; this decorates functions"):

        @immediate()
        class Suite:
            """Decorated as a whole."""
