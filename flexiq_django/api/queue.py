"""``Queue``: declare tasks and schedules, store jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from flexiq_django.api import options as check
from flexiq_django.api.clock import moved_to
from flexiq_django.api.declaring import refuse_options, task_options
from flexiq_django.api.jobs import EnqueueOptions, build_jobs
from flexiq_django.api.methods import Methods
from flexiq_django.api.registry import register
from flexiq_django.api.result import JobResult
from flexiq_django.api.retention import check_retention
from flexiq_django.api.schedule import Schedule, build_schedule
from flexiq_django.api.schema import open_place
from flexiq_django.api.storing import store_jobs
from flexiq_django.api.task import Task
from flexiq_django.api.twins import async_twin
from flexiq_django.conf import DEPTH_RULE, get_settings, is_depth
from flexiq_django.core.misfire import MisfirePolicy
from flexiq_django.core.retention import Retention
from flexiq_django.exceptions import InvalidOptionError
from flexiq_django.store.admission import NAMESPACE
from flexiq_django.store.scope import Scope

P = ParamSpec("P")
R = TypeVar("R")


class Queue(Methods):
    """A namespace of jobs in one database, and the tasks declared on it.

    Without arguments it follows the ``FLEXIQ`` setting. ``namespace`` keeps its jobs apart from all
    others; ``using`` is the database alias; ``default_retry``, ``default_timeout`` (seconds) and
    ``default_priority`` hold for tasks that do not say. ``retention`` says how long the workers of
    the namespace keep history; ``result_ttl`` (seconds) is its older form, the same window for
    every table, and ``retention`` wins. ``dlq_auto_retry_delay`` (seconds) and
    ``dlq_auto_retry_max`` say when its workers retry dead letters by themselves, and how often (0:
    never). ``max_queue_depth`` is this queue's own ``MAX_QUEUE_DEPTH``. With ``auto_migrate`` the
    first use of the queue in a process brings the tables up to date. Raises ``InvalidOptionError``.
    """

    def __init__(
        self,
        namespace: str | None = None,
        *,
        using: str | None = None,
        default_retry: int | None = None,
        default_timeout: float | None = None,
        default_priority: int | None = None,
        retention: Retention | None = None,
        result_ttl: float | None = None,
        dlq_auto_retry_delay: float | None = None,
        dlq_auto_retry_max: int | None = None,
        max_queue_depth: int | dict[str, int] | None = None,
        auto_migrate: bool = False,
    ) -> None:
        if namespace is not None:
            check.check_name("namespace", namespace, longest=100)
        if default_retry is not None:
            check.check_whole("default_retry", default_retry, least=0, most=2**31 - 1)
        check.check_seconds("default_timeout", default_timeout, above_zero=True)
        check.check_priority("default_priority", default_priority)
        check.check_seconds("result_ttl", result_ttl)
        check.check_seconds("dlq_auto_retry_delay", dlq_auto_retry_delay)
        if dlq_auto_retry_max is not None:
            check.check_whole("dlq_auto_retry_max", dlq_auto_retry_max, least=0, most=2**31 - 1)
        if not is_depth(max_queue_depth):
            raise InvalidOptionError(
                f"max_queue_depth is {max_queue_depth!r}; allowed is {DEPTH_RULE}"
            )
        self._max_depth = max_queue_depth
        #: What this queue itself says of dead letters; see ``api/auto_retry.py``.
        self.own_auto_retry = (dlq_auto_retry_delay, dlq_auto_retry_max)
        self._retention = None if retention is None else check_retention(retention)
        self._result_ttl = result_ttl
        self._namespace = namespace
        self._using = using
        self._auto_migrate = auto_migrate
        self._open: set[str] = set()
        self._own_defaults = {
            "max_retries": default_retry,
            "timeout": default_timeout,
            "priority": default_priority,
        }
        self.tasks: dict[str, Task[Any, Any]] = {}
        self.schedules: dict[str, Schedule] = {}
        register(self)

    def __repr__(self) -> str:
        return f"<Queue {self.place.namespace!r} on {self.place.using!r}>"

    @property
    def scope(self) -> Scope:
        """Where the queue lives, for a call that asks its database.

        The first one in a process opens the queue: raises ``ContractError`` if this build may not
        work with the database.
        """
        place = self.place
        if place.using not in self._open:
            open_place(place, auto_migrate=self._auto_migrate)
            self._open.add(place.using)
        now = moved_to()
        return place if now is None else replace(place, now=now)

    @property
    def place(self) -> Scope:
        """Where the queue lives; the database is not asked."""
        settings = get_settings()
        return Scope(
            using=self._using or settings.DATABASE,
            namespace=self._namespace or settings.NAMESPACE,
        )

    @property
    def follows_settings(self) -> bool:
        """Whether the settings alone say where the queue lives."""
        return self._namespace is None and self._using is None

    @property
    def defaults(self) -> dict[str, Any]:
        """What a job takes that neither its call nor its task says."""
        settings = get_settings()
        return {
            "queue": "default",
            "max_retries": settings.DEFAULT_RETRY,
            "timeout": settings.DEFAULT_TIMEOUT,
            "priority": settings.DEFAULT_PRIORITY,
            **{name: value for name, value in self._own_defaults.items() if value is not None},
        }

    # --- declaring --------------------------------------------------------------------------------

    @overload
    def task(self, function: Callable[P, R]) -> Task[P, R]: ...

    @overload
    def task(
        self,
        *,
        name: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        max_retries: int | None = None,
        timeout: float | None = None,
        soft_timeout: float | None = None,
        result_ttl: float | None = None,
        transactional: bool = False,
        idempotent: bool = False,
        rate_limit: str | None = None,
        max_concurrent: int | None = None,
        retry_budget: str | None = None,
        retry_backoff: float = 1.0,
        retry_delays: Sequence[float] = (),
        max_retry_delay: float = 300.0,
        jitter: bool = True,
        retry_on: Sequence[type[BaseException]] = (),
        dont_retry_on: Sequence[type[BaseException]] = (),
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...

    def task(
        self, function: Callable[P, R] | None = None, **options: Any
    ) -> Task[P, R] | Callable[[Callable[P, R]], Task[P, R]]:
        """Declare a function as a task: ``@queue.task`` or ``@queue.task(...)``.

        The name is ``module.qualname`` unless given; declaring it again replaces the task. Times
        are seconds. A failed attempt is tried again up to ``max_retries`` times, after
        ``retry_delays[n]`` (the last repeats), else after ``retry_backoff * 2**n`` up to
        ``max_retry_delay``, drawn at random from that span unless ``jitter=False``; ``retry_on``
        and ``dont_retry_on`` say for which exceptions. With ``transactional=True`` the body and the
        completion of the job commit together, in the queue's database. With ``idempotent=True`` a
        call with the arguments of a job that has not ended returns that job. ``soft_timeout`` is
        noticed by ``current_job.check_timeout()``. Over all workers together, ``rate_limit`` (such
        as ``"100/m"``) and ``max_concurrent`` bound how many jobs of the task start and run;
        ``retry_budget`` (such as ``"100/m"``) bounds their retries: beyond it a failed job is dead
        at once. Raises ``InvalidOptionError`` and ``ConfigurationError``.
        """
        if function is not None:
            return self._declare(function, options)
        return lambda function: self._declare(function, options)

    def _declare(self, function: Callable[P, R], options: Mapping[str, Any]) -> Task[P, R]:
        name, chosen = task_options(function, options)
        task = Task(function, name=name, queue=self, options=chosen)
        self.tasks[name] = task
        return task

    def periodic(
        self,
        cron: str,
        *,
        name: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        queue: str | None = None,
        timezone: str | None = None,
        misfire: MisfirePolicy | str = MisfirePolicy.ONCE,
        misfire_window: float = 3600,
        **task_options: Any,
    ) -> Callable[[Callable[P, R] | Task[P, R]], Task[P, R]]:
        """Declare a function, or a task, to be enqueued on a schedule.

        ``cron`` has five fields, or six with the seconds first. ``timezone`` is the project's
        ``TIME_ZONE`` unless given. ``misfire`` says what happens to runs that were missed while no
        worker was there: ``"skip"`` them, run ``"once"`` for all of them, or ``"all"`` of the last
        ``misfire_window`` seconds. Further options are those of :meth:`task`. One run fires once,
        however many workers there are. Raises ``InvalidScheduleError``.
        """

        def declare(function: Callable[P, R] | Task[P, R]) -> Task[P, R]:
            task = function if isinstance(function, Task) else self._declare(function, task_options)
            if task is function:
                refuse_options(task.name, task_options)
            schedule = build_schedule(
                task, cron, name=name, args=args, kwargs=kwargs or {}, queue=queue,
                timezone=timezone, misfire=misfire, misfire_window=misfire_window,
            )  # fmt: skip
            self.schedules[schedule.name] = schedule
            return task

        return declare

    # --- storing jobs -----------------------------------------------------------------------------

    def enqueue(
        self,
        task: Task[Any, Any] | str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> JobResult:
        """Store a job, in the transaction the caller is in; its handle.

        Options not given come from the task, then from the queue. A task known only by name to
        other processes may be enqueued by that name. Raises the named error of whatever is not
        allowed, before anything is written.
        """
        jobs = build_jobs(self, task, [(args, kwargs or {})], options)
        return store_jobs(self, jobs)[0]

    def enqueue_many(
        self,
        task: Task[Any, Any] | str,
        args_list: Sequence[Sequence[Any]],
        kwargs_list: Sequence[Mapping[str, Any]] | None = None,
        *,
        delay_list: Sequence[float | None] | None = None,
        unique_keys: Sequence[str | None] | None = None,
        metadata_list: Sequence[str | None] | None = None,
        notes_list: Sequence[dict[str, Any] | None] | None = None,
        expires_list: Sequence[float | None] | None = None,
        result_ttl_list: Sequence[float | None] | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> list[JobResult]:
        """Store one job for each entry of ``args_list``, in one transaction; their handles in
        order.

        The lists give each job its own value; they must be as long as ``args_list``. A unique key
        that is held already, or occurs twice, gives the handle of the job that holds it. Raises
        what :meth:`enqueue` raises, and ``InvalidOptionError`` for a list of another length.
        """
        lists = {
            "kwargs": kwargs_list,
            "delay": delay_list,
            "unique_key": unique_keys,
            "metadata": metadata_list,
            "notes": notes_list,
            "expires": expires_list,
            "result_ttl": result_ttl_list,
        }
        given = {name: values for name, values in lists.items() if values is not None}
        check.check_lengths(len(args_list), given)
        given.pop("kwargs", None)
        calls_kwargs = kwargs_list or [{}] * len(args_list)
        rows = [
            dict(zip(given, values, strict=True)) for values in zip(*given.values(), strict=True)
        ]
        calls = list(zip(args_list, calls_kwargs, strict=True))
        jobs = build_jobs(self, task, calls, options, rows=rows or None)
        return store_jobs(self, jobs)

    aenqueue = async_twin(enqueue)
    aenqueue_many = async_twin(enqueue_many)

    @property
    def max_depths(self) -> dict[str, int]:
        """Pending jobs allowed at most by queue, and under ``*`` in the namespace."""
        given = get_settings().MAX_QUEUE_DEPTH if self._max_depth is None else self._max_depth
        if given is None:
            return {}
        return {NAMESPACE: given} if isinstance(given, int) else given
