"""The methods of ``Queue`` that delete: dead letters and old jobs, for good."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from flexiq_django.api import options as check
from flexiq_django.api.announce import wake_workers
from flexiq_django.api.twins import async_twin
from flexiq_django.store import dead_letters, link, purge

if TYPE_CHECKING:
    from flexiq_django.store.scope import Scope

#: Beyond a hundred years either way the answer no longer changes.
_LONGEST_SECONDS = 3_155_760_000.0


class Purging:
    """What a person deletes by hand. Nothing of it can be undone."""

    if TYPE_CHECKING:

        @property
        def scope(self) -> Scope:
            """Where the queue lives."""

    def delete_dead(self, dead_id: str) -> bool:
        """Delete one dead letter, which then cannot be retried; False if there is none of this id.

        Takes the id of the letter. The dead job, its errors and its log lines stay.
        """
        key = check.parse_id(dead_id)
        return key is not None and dead_letters.delete(self.scope, key)

    def purge_dead(self, older_than: float = 86_400) -> int:
        """Delete dead letters that failed more than ``older_than`` seconds ago; how many.

        The dead jobs behind them go too, with their errors, log lines, metrics, dependencies and
        replay history. A negative age reaches into the future: everything goes. Works in short
        transactions. Raises ``TypeError`` for what is no number.
        """
        return sum(purging_dead(self.scope, older_than))

    def purge_completed(self, older_than: float = 86_400) -> int:
        """Delete jobs that completed more than ``older_than`` seconds ago; how many.

        Archived ones too, each with its errors, log lines, metrics, dependencies and replay
        history. Dead and cancelled jobs stay. A negative age reaches into the future: all completed
        jobs go. Works in short transactions. Raises ``TypeError`` for what is no number.
        """
        scope = self.scope
        removed = sum(
            with_rests(scope, purge.purge_completed(scope, older_than_ms=age_ms(older_than)))
        )
        if removed:  # perhaps something waited for one of them
            wake_workers(scope)
        return removed

    adelete_dead = async_twin(delete_dead)
    apurge_dead = async_twin(purge_dead)
    apurge_completed = async_twin(purge_completed)


def purging_dead(scope: Scope, older_than: float) -> Iterator[int]:
    """Purge dead letters; how many, batch by batch."""
    return with_rests(scope, purge.purge_dead(scope, older_than_ms=age_ms(older_than)))


def age_ms(older_than: float) -> int:
    """An age in whole milliseconds. Raises ``TypeError`` and ``InvalidOptionError``."""
    age = check.check_number("older_than", older_than)
    return round(max(-_LONGEST_SECONDS, min(_LONGEST_SECONDS, age)) * 1000)


def with_rests(scope: Scope, batches: Iterator[int]) -> Iterator[int]:
    """The same, leaving others room between two batches: on SQLite nobody writes during one."""
    rest_factor = link.rest_factor(scope)
    while True:
        began = time.monotonic()
        found = next(batches, None)
        if found is None:
            return
        yield found
        time.sleep(rest_factor * (time.monotonic() - began))  # noqa: TID251 - no stop to hear
