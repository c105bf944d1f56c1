"""Bodies that only some executors can bear."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection

from flexiq_django import current_job, queue
from tests.flows.tasks import hold
from tests.testapp.models import Mark
from tests.waiting import wait_until


@queue.task(max_retries=0, timeout=1)
async def await_for_ever() -> None:
    """Wait where being cancelled is noticed."""
    await asyncio.sleep(60)


@queue.task(max_retries=0, timeout=1)
async def swallow_for_ever() -> None:
    """Wait, and refuse to be cancelled."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


@queue.task(max_retries=0, timeout=1)
async def block_the_loop() -> None:
    """Wait without awaiting."""
    time.sleep(60)  # noqa: TID251 - this is what is tested


@queue.task(max_retries=3)
async def clean_up_when_cancelled(path: str) -> None:
    """Never ask; tidy up when stopped."""
    Path(path).touch()
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.4)  # longer than two looks at what was requested
        await Mark.objects.acreate(key="tidied")


@queue.task(max_retries=0)
async def hold_a_thread(gate: str) -> None:
    """Keep a thread that others need for the database until the gate opens."""
    await sync_to_async(hold.function)(gate)


@queue.task(max_retries=0)
async def meet(path: str, count: int) -> int:
    """Return when so many bodies are here at the same time."""
    Path(path, current_job.id).touch()
    async with asyncio.timeout(30):
        while (there := len(await sync_to_async(os.listdir)(path))) < count:
            await asyncio.sleep(0.02)
    return there


@queue.task(max_retries=0)
async def use_the_database(key: str) -> dict[str, Any]:
    """Write and read with the async API; which connection that was."""
    await Mark.objects.acreate(key=key)
    found = await Mark.objects.filter(key=key).acount()
    current_job.update_progress(70)
    return {"found": found, "thread": await sync_to_async(threading.get_ident)()}


@queue.task(max_retries=0)
async def ask_in_a_coroutine() -> str:
    """Ask what a coroutine may ask."""
    current_job.check_cancelled()
    current_job.check_timeout()
    return current_job.id


@queue.task(max_retries=1, retry_delays=[0])
def die(first: bool) -> str:
    """The first attempt takes its process with it."""
    if first and current_job.attempt == 1:
        current_job.log("about to die")
        os.kill(os.getpid(), signal.SIGKILL)
    return f"attempt {current_job.attempt}"


@queue.task(max_retries=0)
def leave(code: int) -> None:
    """End the process as if it had done its work."""
    os._exit(code)


@queue.task(max_retries=0)
def where_am_i() -> list[int]:
    """The process, and the one that started it."""
    return [os.getpid(), os.getppid()]


@queue.task(max_retries=0, timeout=1)
def start_a_program(path: str) -> None:
    """Hang in a program that would outlive a careless kill."""
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    Path(path).write_text(str(program.pid))
    program.wait()


@queue.task(max_retries=3)
def ask_often(path: str) -> None:
    """Chatter without a pause, and ask whether to go on."""
    Path(path).touch()
    wait_until(_ask, 60, "to be cancelled")


def _ask() -> bool:
    current_job.update_progress(50)
    current_job.check_cancelled()
    return False


@queue.task(max_retries=0, transactional=True)
def note_together(key: str) -> bool:
    """Leave a mark in the transaction of the completion."""
    Mark.objects.create(key=key)
    return connection.in_atomic_block


@queue.task(max_retries=0, timeout=1, transactional=True)
def hang_with_a_lock(path: str) -> None:
    """Write, and hang in the transaction."""
    Mark.objects.create(key="never committed")
    Path(path).touch()
    time.sleep(60)  # noqa: TID251 - this is what is tested


@queue.task(max_retries=0)
def complain() -> None:
    """Log something to the package's own logger."""
    logging.getLogger("flexiq_django.tasks").warning("something is odd")


@queue.task(max_retries=0)
def hold_memory(size: int) -> int:
    """Keep so many bytes for good."""
    _held.append(bytearray(os.urandom(1024)) * (size // 1024))
    return os.getpid()


_held: list[bytearray] = []
