"""Random lives of many jobs, compared step by step with the rules in `rules.py`.

Whatever the order of claims, crashes, stops, requeues, cancels, pauses, sessions and limits: each
job is where the rules say, an attempt that lost its job changes nothing, and no limit is ever
exceeded.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test import TestCase
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from flexiq_django.core.records import ClaimedJob, NewJob, Settlement
from flexiq_django.exceptions import DependencyError
from flexiq_django.models import ArchivedJob, DeadLetter, Job, JobError
from flexiq_django.store import archive, lease, operate, promote, purge, revive, settle, steer
from flexiq_django.store.enqueue import insert_jobs
from flexiq_django.store.scope import Scope
from tests.factories import NewJobFactory, at
from tests.store.acting import claim, settlement
from tests.store.rules import BAD, ENDED, Model, ModelJob, Rule

pytestmark = pytest.mark.django_db

T = TypeVar("T")

LEASE = 20.0
PAUSE_REFUSED = ("paused", "cancelled")
QUEUES = st.sampled_from(["mail", "render"])
TASKS = st.sampled_from(["app.send", "app.draw", "app.sum"])


PICKS = st.integers(0, 40)
ACTS = st.tuples(
    st.integers(0, 12),
    st.sampled_from(["complete", "fail", "stop", "pause", "give back", "beat", "beat"]),
    st.sampled_from([0, 0, 5, 40]),
)
NEW = st.fixed_dictionaries(
    {
        "queue": QUEUES,
        "task_name": TASKS,
        "priority": st.integers(-1, 1),
        "delay_ms": st.sampled_from([0, 0, 0, 7_000, 30_000]),
        "max_retries": st.integers(0, 2),
        "unique_key": st.sampled_from([None, None, None, "one"]),
        "session_id": st.sampled_from([None, None, "ann", "bob"]),
        "may_fail": st.booleans(),
        "count": st.integers(1, 4),
    }
)


class Lives(RuleBasedStateMachine):
    """Jobs of one namespace, and all that may happen to them."""

    @initialize(
        queue=st.sampled_from([None, 1, 2]),
        task=st.sampled_from([None, 1, 2]),
        first=st.lists(NEW, min_size=2, max_size=4),
    )
    def begin(self, queue: int | None, task: int | None, first: list[dict[str, Any]]) -> None:
        self.known: list[UUID] = []
        self.attempts: list[ClaimedJob] = []
        self.namespace = f"random-{uuid4().hex[:12]}"
        self.model = Model()
        if queue is not None:
            self.limit_queue("mail", queue, None)
        if task is not None:
            self.limit_task("app.draw", task, None)
        for options in first:
            self.enqueue(options, [])

    @property
    def scope(self) -> Scope:
        return at(self.model.now, namespace=self.namespace)

    # --- time and jobs ----------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 7, 19, 30]))
    def wait(self, seconds: int) -> None:
        self.model.now += seconds
        with self.committed():
            while promote.promote_due(self.scope)[0]:
                pass

    @rule(options=NEW, parents=st.lists(PICKS, max_size=2))
    def enqueue(self, options: dict[str, Any], parents: list[int]) -> None:
        ids = list(dict.fromkeys(self._pick(self.known, number) for number in parents))
        known = [self.model.jobs[key] for key in ids if key in self.model.jobs]
        count, may_fail, key = options["count"], options["may_fail"], options["unique_key"]
        fields = {name: options[name] for name in options if name not in ("count", "may_fail")}
        is_limited = self._has_limit(options["task_name"])
        new = [
            NewJobFactory(
                **fields,
                parents=tuple(ids),
                allow_parent_failure=may_fail,
                is_limited=is_limited,
            )
            for _ in range(count)
        ]
        if len(known) < len(ids) or (any(job.status in BAD for job in known) and not may_fail):
            with pytest.raises(DependencyError):
                insert_jobs(self.scope, new)
            return
        with self.committed():
            stand = insert_jobs(self.scope, new)
        for job, stands in zip(new, stand, strict=True):
            holder = self.model.holder(key) if key else None
            assert stands == (holder.id if holder else job.id)
            if holder is None:
                self._note(job, {each.id: may_fail for each in known if each.status not in ENDED})

    def _has_limit(self, task: str) -> bool:
        limit = self.model.rules.get(("task", task))
        return limit is not None and limit.is_set

    def _pick(self, things: list[T], number: int) -> T:
        return things[number % len(things)]

    def _note(self, new: NewJob, parents: dict[UUID, bool] | None = None) -> None:
        self.known.append(new.id)
        self.model.jobs[new.id] = ModelJob(
            id=new.id,
            queue=new.queue,
            task=new.task_name,
            priority=new.priority,
            due=self.model.now + new.delay_ms / 1000,
            max_retries=new.max_retries,
            key=new.unique_key,
            session=new.session_id,
            parents=parents or {},
        )

    # --- attempts ---------------------------------------------------------------------------------

    @rule(limit=st.integers(0, 8), acts=st.lists(ACTS, max_size=4))
    def work(self, limit: int, acts: list[tuple[int, str, int]]) -> None:
        if limit:
            self._claim(limit)
        for number, what, wait in acts if self.attempts else ():
            # Counted from the newest, but old ones come late as well.
            self._act(self.attempts[-1 - number % len(self.attempts)], what, wait)

    def _claim(self, limit: int) -> None:
        model = self.model
        ready = sorted(model.ready(), key=lambda job: job.rank)
        claimed = claim(self.scope, limit=limit, lease_ms=int(LEASE * 1000))

        assert len({job.id for job in claimed}) == len(claimed) <= limit
        for each in claimed:
            job = model.jobs[each.id]
            assert job in ready, "claimed what was not ready"
            assert model.has_room(job), "claimed above a limit"
            model.start(job, each.token, LEASE)
            assert (each.attempt, each.retry_count) == (job.attempt, job.retry_count)
        left = [job for job in model.ready() if model.has_room(job)]
        assert len(claimed) == limit or not left, "left a job that could have started"
        taken = [model.jobs[each.id] for each in claimed]
        assert taken == sorted(taken, key=lambda job: job.rank)
        if not any(limit.is_set for limit in model.rules.values()):
            assert taken == ready[:limit], "did not take the best"
        self.attempts += claimed

    def _act(self, attempt: ClaimedJob, what: str, wait: int) -> None:
        if what == "fail":
            self._fail(attempt, wait)
        else:
            acts = {
                "complete": self._complete,
                "stop": self._stop_at_request,
                "pause": self._pause,
                "give back": self._give_back,
                "beat": self._beat,
            }
            acts[what](attempt)

    def _owns(self, attempt: ClaimedJob) -> bool:
        job = self.model.jobs.get(attempt.id)
        return job is not None and job.status == "running" and job.token == attempt.token

    def _settle(
        self, attempt: ClaimedJob, written: Settlement, apply: Callable[[ModelJob], None]
    ) -> None:
        is_owned = self._owns(attempt)
        job = self.model.jobs.get(attempt.id)
        # The answer to the same settlement may have been lost: then it is known again.
        is_repeat = (
            not is_owned
            and job is not None
            and not job.is_archived
            and job.token == attempt.token
            # A pause is a cancel where somebody had asked for one.
            and (job.status == written.status or (written.status, job.status) == PAUSE_REFUSED)
        )
        with self.committed():
            outcome = settle.settle(self.scope, [written])
        assert (attempt.id in outcome.settled) == (is_owned or is_repeat)
        assert (attempt.id in outcome.lost) == (not is_owned and not is_repeat)
        if is_owned and job is not None:
            apply(job)

    def _complete(self, attempt: ClaimedJob) -> None:
        self._settle(
            attempt,
            settlement(attempt, result="1", duration_ms=5.0, succeeded=True),
            lambda job: self.model.end(job, "complete"),
        )

    def _fail(self, attempt: ClaimedJob, wait: int) -> None:
        if attempt.retry_count >= attempt.max_retries:
            written = settlement(attempt, "dead", error="broken", attempt_error="broken")
            self._settle(attempt, written, self._die)
        else:
            written = settlement(attempt, "pending", attempt_error="broken", wait_ms=wait * 1000)
            self._settle(attempt, written, lambda job: self.model.retry(job, wait))

    def _die(self, job: ModelJob) -> None:
        job.errors += 1
        self.model.end(job, "dead")

    def _stop_at_request(self, attempt: ClaimedJob) -> None:
        self._settle(
            attempt,
            settlement(attempt, "cancelled", error="cancelled by request"),
            lambda job: self.model.end(job, "cancelled"),
        )

    def _pause(self, attempt: ClaimedJob) -> None:
        job = self.model.jobs.get(attempt.id)
        if self._owns(attempt) and job is not None and job.is_asked_to_stop:
            outcome = settle.settle(self.scope, [settlement(attempt, "paused", pause_reason="why")])
            assert outcome.stopped == {attempt.id}
            self.model.end(job, "cancelled")
            return
        self._settle(
            attempt,
            settlement(attempt, "paused", pause_reason="why"),
            lambda job: setattr(job, "status", "paused"),
        )

    def _continue_paused(self, key: UUID) -> None:
        job = self.model.jobs.get(key)
        is_paused = job is not None and job.status == "paused"
        assert revive.continue_paused(self.scope, key, limited={}) == is_paused
        if is_paused and job is not None:
            job.status, job.token, job.due = "pending", None, self.model.now

    def _ask_to_stop(self, key: UUID) -> None:
        job = self.model.jobs.get(key)
        is_running = job is not None and job.status == "running"
        assert operate.request_cancel(self.scope, key) == is_running
        if is_running and job is not None:
            job.is_asked_to_stop = True

    def _give_back(self, attempt: ClaimedJob) -> None:
        is_owned = self._owns(attempt)
        assert lease.release(self.scope, [attempt]) == ({attempt.id} if is_owned else set())
        if is_owned:
            self.model.give_back(self.model.jobs[attempt.id])

    def _beat(self, attempt: ClaimedJob) -> None:
        job = self.model.jobs.get(attempt.id)
        renewed = lease.renew(
            self.scope, [(attempt.id, attempt.token)], lease_ms=int(LEASE * 1000)
        ).owned
        if not self._owns(attempt) or job is None:
            assert renewed == set()
        elif job.lease_until > self.model.now + LEASE / 10 or all(
            limit.at_once is None for _, limit in self.model.rules_of(job)
        ):
            assert renewed == {attempt.id}
            job.lease_until = self.model.now + LEASE
        else:
            assert renewed == set(), "a place that was free again was taken a second time"

    @rule()
    def reap(self) -> None:
        model = self.model
        gone = {
            job.id: job
            for job in model.live()
            if job.status == "running" and job.lease_until <= model.now
        }

        def decide(job: ClaimedJob) -> Settlement:
            if job.retry_count >= job.max_retries:
                return settlement(job, "dead", error="worker lost", attempt_error="worker lost")
            return settlement(job, "pending", attempt_error="worker lost")

        with self.committed():
            written, _ = settle.reap(self.scope, decide)
        assert {each.job_id for each in written} == set(gone)
        for job in gone.values():
            job.token = None
            if job.retry_count >= job.max_retries:
                self._die(job)
            else:
                model.retry(job, 0)

    # --- what people do ---------------------------------------------------------------------------

    @rule(number=PICKS, what=st.sampled_from(["cancel", "stop", "requeue", "continue", "replay"]))
    def operate(self, number: int, what: str) -> None:
        verbs = {
            "cancel": self._cancel,
            "stop": self._ask_to_stop,
            "requeue": self._requeue,
            "continue": self._continue_paused,
            "replay": self._replay,
        }
        verbs[what](self._pick(self.known, number))

    def _cancel(self, key: UUID) -> None:
        job = self.model.jobs.get(key)
        is_pending = job is not None and job.status in ("pending", "paused")
        with self.committed():
            assert bool(operate.cancel(self.scope, key)) == is_pending
        if is_pending and job is not None:
            job.parents.clear()
            self.model.end(job, "cancelled")

    def _requeue(self, key: UUID) -> None:
        job = self.model.jobs.get(key)
        is_running = job is not None and job.status == "running"
        assert revive.requeue(self.scope, key, limited={}) == is_running
        if is_running and job is not None:
            job.status, job.token, job.due = "pending", None, self.model.now
            job.is_asked_to_stop = False

    def _replay(self, key: UUID) -> None:
        job = self.model.jobs.get(key)
        with self.committed():
            copy = revive.replay(self.scope, key, limited={})
        assert (copy is not None) == (job is not None)
        if copy is not None:
            self._note(copy)

    @rule()
    def retry_dead(self) -> None:
        letters = dict(
            DeadLetter.objects.filter(namespace=self.namespace).values_list("id", "original_job_id")
        )
        with self.committed():
            outcome = revive.retry_dead(self.scope, list(letters), limited={})
        assert set(outcome.jobs) == set(letters)
        for letter, new in outcome.jobs.items():
            self.model.jobs[letters[letter]].has_letter = False
            self._note(new)

    @rule(queue=QUEUES, pauses=st.booleans())
    def pause_or_resume(self, queue: str, pauses: bool) -> None:
        if pauses:
            steer.pause(self.scope, queue)
            self.model.paused.add(queue)
        else:
            assert steer.resume(self.scope, queue) == (queue in self.model.paused)
            self.model.paused.discard(queue)

    @rule(
        queue=QUEUES,
        at_once=st.sampled_from([None, 1, 2]),
        per_minute=st.sampled_from([None, 1, 4]),
    )
    def limit_queue(self, queue: str, at_once: int | None, per_minute: int | None) -> None:
        rate_limit = per_minute and f"{per_minute}/m"
        steer.set_queue(self.scope, queue, max_concurrent=at_once, rate_limit=rate_limit)
        self._limit(("queue", queue), at_once=at_once, per_minute=per_minute)

    @rule(task=TASKS, at_once=st.sampled_from([None, 1, 3]), per_minute=st.sampled_from([None, 3]))
    def limit_task(self, task: str, at_once: int | None, per_minute: int | None) -> None:
        declared = {"max_concurrent": at_once, "rate_limit": per_minute and f"{per_minute}/m"}
        steer.declare_limits(self.scope, {task: {**declared, "retry_budget": None}})
        self._limit(("task", task), at_once=at_once, per_minute=per_minute)

    def _limit(self, key: tuple[str, str], *, at_once: int | None, per_minute: int | None) -> None:
        limit = self.model.rules.setdefault(key, Rule())
        limit.at_once, limit.per_minute = at_once, per_minute

    @rule(purges=st.booleans())
    def tidy(self, purges: bool) -> None:
        if purges:
            for _ in purge.purge_completed(self.scope, older_than_ms=-1):
                pass
            gone = [job.id for job in self.model.jobs.values() if job.status == "complete"]
            for key in gone:
                del self.model.jobs[key]
            return
        for _ in archive.archive_ended(self.scope, older_than_ms=-1):
            pass
        for job in self.model.live():
            job.is_archived = job.status in ENDED

    @contextlib.contextmanager
    def committed(self) -> Iterator[None]:
        """As if the transaction of the test ended here: what waits for the commit happens."""
        with TestCase.captureOnCommitCallbacks(execute=True):
            yield

    # --- comparison -------------------------------------------------------------------------------

    @invariant()
    def the_next_of_a_session_may_go(self) -> None:
        self.model.let_go()
        for key, slot, line in self._rows(Job, "id", "session_slot", "session_line"):
            job = self.model.jobs[key]
            waiting = self.model.in_line(job.session) if job.session else []
            assert slot == (job.session if job.holds_line else None)
            assert line == (job.session if job in waiting else None)

    @invariant()
    def every_job_is_where_the_rules_say(self) -> None:
        columns = ("id", "status", "attempt", "retry_count")
        stored = {row[0]: row for row in self._rows(Job, *columns)}
        archived = {row[0]: row for row in self._rows(ArchivedJob, *columns)}
        for job in self.model.jobs.values():
            row = (archived if job.is_archived else stored).pop(job.id, None)
            assert row == (job.id, job.status, job.attempt, job.retry_count)
        assert not stored, "jobs that should not be there"
        assert not archived

    @invariant()
    def errors_and_letters_came_with_their_ends(self) -> None:
        letters = {key for (key,) in self._rows(DeadLetter, "original_job_id")}
        assert letters == {job.id for job in self.model.jobs.values() if job.has_letter}
        errors = [key for (key,) in self._rows(JobError, "job_id")]
        for job in self.model.jobs.values():
            assert errors.count(job.id) == job.errors

    @invariant()
    def what_waits_can_be_found(self) -> None:
        rows = self._rows(Job, "id", "ready_lane", "promote_at", "lease_at")
        for key, lane, promote_at, lease_at in rows:
            job = self.model.jobs[key]
            is_free = job.status == "pending" and not job.parents
            is_next = job.session is None or job.holds_line
            assert (lane is not None) == (is_free and is_next and job.due <= self.model.now)
            assert (promote_at is not None) == (is_free and job.due > self.model.now)
            assert (lease_at is not None) == (job.status == "running")

    def _rows(self, model: Any, *columns: str) -> list[Any]:
        return list(model.objects.filter(namespace=self.namespace).values_list(*columns))


@pytest.mark.timeout(600)
def test_no_sequence_of_events_breaks_a_rule() -> None:
    runs = 100 if connection.vendor == "sqlite" else 15
    run_state_machine_as_test(
        Lives,
        settings=settings(
            max_examples=runs,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
