"""How an idle worker notices new work: a notification, a changed file, or patience."""

from __future__ import annotations

import contextlib
import select
import socket
import time

from flexiq_django.store import link
from flexiq_django.store.scope import Scope
from flexiq_django.worker.connections import Keeper

#: Longest pause between two looks where a notification comes anyway, in seconds.
_NOTIFIED_PAUSE = 5.0
#: Pause between two looks at SQLite's data version, in seconds, when busy and when idle for a
#: second.
_QUICK_LOOK, _SLOW_LOOK = 0.002, 0.01


class Waker:
    """Waits for work, and can be woken from any thread and from a signal handler.

    This one knows no other sign of work than a call of ``wake``: the worker has to look by itself
    every ``longest_pause`` seconds, after pauses that grow by ``growth`` each time.
    """

    growth = 2.0

    def __init__(self, scope: Scope, keeper: Keeper, *, poll_seconds: float) -> None:
        self._scope = scope
        self._keeper = keeper
        self.longest_pause = poll_seconds
        # A socket rather than an Event: a signal handler may write to it while the main thread
        # waits, where taking the lock of an Event could block for ever.
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._is_woken = False

    def wake(self) -> None:
        """End the present wait, or the next one."""
        if self._is_woken:
            return
        self._is_woken = True
        with contextlib.suppress(OSError):  # full of wake-ups already, or closed
            self._writer.send(b"\0")

    def wait(self, seconds: float) -> bool:
        """Wait until woken, or for signs of work: True; or for ``seconds``: False."""
        return self.rest(seconds)

    def rest(self, seconds: float) -> bool:
        """``wait`` without asking the database, for who wants no more work."""
        select.select([self._reader], [], [], max(0.0, seconds))
        return self._drain()

    def close(self) -> None:
        """Give the descriptors back."""
        self._reader.close()
        self._writer.close()

    def _drain(self) -> bool:
        woken = False
        try:
            while self._reader.recv(4096):
                woken = True
        except BlockingIOError:
            pass
        # Only now: whoever calls wake() before this line has done what there is to see, and the
        # caller is about to look. Lowered earlier, the flag could stay up over an empty socket.
        self._is_woken = False
        return woken


class ListeningWaker(Waker):
    """PostgreSQL: the claiming connection listens itself, so a notification is one hop away."""

    growth = 8.0  # a second look is for what the first notification may have hidden

    def __init__(self, scope: Scope, keeper: Keeper, *, poll_seconds: float) -> None:
        super().__init__(scope, keeper, poll_seconds=poll_seconds)
        self.longest_pause = max(poll_seconds, _NOTIFIED_PAUSE)

    def wait(self, seconds: float) -> bool:
        notified = self._keeper.call(
            lambda: link.wait_for_notify(self._scope, self._reader.fileno(), seconds)
        )
        return self._drain() or notified


class DataVersionWaker(Waker):
    """SQLite: a pragma that costs microseconds tells that somebody has committed to the file."""

    growth = 8.0

    def __init__(self, scope: Scope, keeper: Keeper, *, poll_seconds: float) -> None:
        super().__init__(scope, keeper, poll_seconds=poll_seconds)
        self._seen = -1
        self._changed_at = 0.0

    def wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + max(0.0, seconds)
        while not self._has_changed():
            now = time.monotonic()
            if now >= deadline:
                return False
            look = _QUICK_LOOK if now - self._changed_at < 1.0 else _SLOW_LOOK
            select.select([self._reader], [], [], min(look, deadline - now))
            if self._drain():
                return True
        return True

    def _has_changed(self) -> bool:
        version = self._keeper.call(lambda: link.data_version(self._scope))
        if version == self._seen:
            return False
        self._seen, self._changed_at = version, time.monotonic()
        return True


def make_waker(scope: Scope, keeper: Keeper, *, poll_seconds: float, listen: bool) -> Waker:
    """The waker that fits the database."""
    sign = link.sign_of_work(scope)
    kind = Waker
    if sign == "data version":
        kind = DataVersionWaker
    elif sign == "notification" and listen:
        kind = ListeningWaker
    return kind(scope, keeper, poll_seconds=poll_seconds)
