"""The rules of the queue in a few lines of Python, for comparison with the real store.

No database, no clock, no concurrency: only what a job is, and what each verb makes of it. The
store is compared with this in `test_random_scenarios.py`.
"""

from dataclasses import dataclass, field
from uuid import UUID

ENDED = {"complete", "dead", "cancelled"}
BAD = {"dead", "cancelled"}
OCCUPYING = {"running", "paused"}


@dataclass
class Rule:
    """A limit of a queue or a task: so many at once, so many tokens a minute.

    A bucket is the moment at which it is full again: what is missing is missing as long, whatever
    becomes of the limit meanwhile. It is full again after a minute at the latest.
    """

    at_once: int | None = None
    per_minute: int | None = None
    full_at: float = 0.0

    @property
    def is_set(self) -> bool:
        return self.at_once is not None or self.per_minute is not None

    def has_token(self, now: float) -> bool:
        missing = self._missing(now) * (self.per_minute or 0) / 60
        return self.per_minute is None or self.per_minute - missing >= 1 - 1e-6

    def take(self, now: float, tokens: int) -> None:
        """Take tokens out, or put some back where they are fewer than 0."""
        if self.per_minute is not None:
            self.full_at = now + max(0.0, self._missing(now) + tokens * 60 / self.per_minute)

    def _missing(self, now: float) -> float:
        return min(max(0.0, self.full_at - now), 60.0)


@dataclass
class ModelJob:
    """What is known of one job."""

    id: UUID
    queue: str
    task: str
    priority: int
    due: float
    max_retries: int
    key: str | None = None
    session: str | None = None
    holds_line: bool = False
    parents: dict[UUID, bool] = field(default_factory=dict)  # open edges: may the parent fail?
    status: str = "pending"
    attempt: int = 0
    retry_count: int = 0
    errors: int = 0
    token: int | None = None
    lease_until: float = 0.0
    is_archived: bool = False
    has_letter: bool = False
    is_asked_to_stop: bool = False
    paid: list[Rule] = field(default_factory=list)  # who took a token for the present attempt

    @property
    def rank(self) -> tuple[int, float, int]:
        """Better jobs have a smaller one."""
        return -self.priority, self.due, self.id.int


class Model:
    """All jobs of a namespace."""

    def __init__(self) -> None:
        self.now = 0.0
        self.jobs: dict[UUID, ModelJob] = {}
        self.paused: set[str] = set()
        self.rules: dict[tuple[str, str], Rule] = {}

    # --- questions --------------------------------------------------------------------------------

    def live(self) -> list[ModelJob]:
        """Jobs in the hot table."""
        return [job for job in self.jobs.values() if not job.is_archived]

    def ready(self) -> list[ModelJob]:
        """Jobs that may be claimed, as far as no limit is in the way."""
        return [
            job
            for job in self.live()
            if job.status == "pending"
            and job.due <= self.now
            and not job.parents
            and (job.session is None or job.holds_line)
            and job.queue not in self.paused
        ]

    def in_line(self, session: str) -> list[ModelJob]:
        """Jobs that wait for those before them in their session, in order."""
        waiting = [
            job
            for job in self.live()
            if job.session == session
            and job.status == "pending"
            and job.due <= self.now
            and not job.parents
            and not job.holds_line
        ]
        return sorted(waiting, key=lambda job: (job.due, job.id.int))

    def holder(self, key: str) -> ModelJob | None:
        """The job that has a unique key."""
        return next(
            (job for job in self.live() if job.key == key and job.status not in ENDED), None
        )

    def rules_of(self, job: ModelJob) -> list[tuple[str, Rule]]:
        """The limits a job starts under."""
        named = [("queue", job.queue), ("task", job.task)]
        return [
            (kind, self.rules[kind, name])
            for kind, name in named
            if (kind, name) in self.rules and self.rules[kind, name].is_set
        ]

    def running_under(self, kind: str, job: ModelJob) -> int:
        """Jobs with a live lease that count against the same limit."""
        return sum(
            other.status == "running"
            and other.lease_until > self.now
            and (other.queue == job.queue if kind == "queue" else other.task == job.task)
            for other in self.live()
        )

    def has_room(self, job: ModelJob) -> bool:
        """Whether every limit of a job lets one more start now."""
        for kind, rule in self.rules_of(job):
            if rule.at_once is not None and self.running_under(kind, job) >= rule.at_once:
                return False
            if not rule.has_token(self.now):
                return False
        return True

    # --- verbs ------------------------------------------------------------------------------------

    def start(self, job: ModelJob, token: int, lease: float) -> None:
        """A claim takes a job."""
        job.paid = [rule for _, rule in self.rules_of(job) if rule.per_minute is not None]
        for rule in job.paid:
            rule.take(self.now, 1)
        job.status, job.token, job.lease_until = "running", token, self.now + lease
        assert job.session is None or not any(
            other is not job and other.session == job.session and other.status in OCCUPYING
            for other in self.live()
        ), "two jobs of one session"
        job.attempt += 1

    def give_back(self, job: ModelJob) -> None:
        """A claim is undone."""
        for rule in job.paid:
            rule.take(self.now, -1)
        job.status, job.token = "pending", None
        job.attempt -= 1

    def retry(self, job: ModelJob, wait: float) -> None:
        """An attempt failed, and the job is tried again."""
        job.status, job.due = "pending", self.now + wait
        job.retry_count += 1
        job.errors += 1

    def let_go(self) -> None:
        """Where nobody holds the line of a session, the first in it does."""
        lines = {job.session for job in self.live() if job.session is not None}
        for session in lines - {job.session for job in self.live() if job.holds_line}:
            for first in self.in_line(str(session))[:1]:
                first.holds_line = True

    def end(self, job: ModelJob, status: str) -> None:
        """A job ends, and its dependents move."""
        job.status, job.has_letter, job.holds_line = status, status == "dead", False
        for child in self.live():
            if job.id not in child.parents:
                continue
            may_fail = child.parents.pop(job.id)
            if status in BAD and not may_fail and child.status == "pending":
                child.parents.clear()
                self.end(child, "cancelled")
