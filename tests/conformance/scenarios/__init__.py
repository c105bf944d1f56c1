"""Facts about the calls that both packages have. Imports neither: each brings a ``Bench``.

A scenario returns its facts by label; ``expected.py`` says what they are. The imports are relative,
as the reference's interpreter knows this package by another name.
"""

from .across import across_namespaces
from .bench import Bench, Facts
from .by_hand import letters_by_hand, odd_settings, replays_by_hand
from .calls import async_twins, default_arguments, lists_of_options, names_and_defaults
from .cascades import cascades
from .dead_letters import dead_letters, replays
from .dispatch import coroutines, dispatch, paused_from_the_start
from .edges import ages, idempotent, moments, types_of_options
from .handles import failed_results, log_lines, odd_results, stops, streams, taken_back
from .jobs import (
    asked_to_stop,
    calling,
    dependencies,
    document,
    failure_classes,
    failures,
    input_that_is_refused,
    order,
    results,
    retries,
    running,
    too_late,
    unique_keys,
    what_each_call_does_by_status,
)
from .keeping import contract, namespaces, retention, settings
from .limits import concurrency_limits, limits_of_another_object, rate_limits
from .queues import archive, purges, queues
from .reading import figures, listings
from .schedules import cron_texts, schedules, schedules_by_hand
from .searching import cursors, empty_queues, percentiles, searches
from .sweeping import lifetimes, previews, retried_by_itself, sweeps
from .timing import late_but_unnoticed, soft_timeouts, timeouts, waits

SCENARIOS = (
    what_each_call_does_by_status,
    input_that_is_refused,
    unique_keys,
    dependencies,
    failures,
    running,
    asked_to_stop,
    retries,
    calling,
    order,
    results,
    failure_classes,
    too_late,
    document,
    listings,
    figures,
    dead_letters,
    replays,
    queues,
    purges,
    archive,
    retention,
    settings,
    contract,
    namespaces,
    timeouts,
    late_but_unnoticed,
    soft_timeouts,
    waits,
    rate_limits,
    limits_of_another_object,
    concurrency_limits,
    cascades,
    across_namespaces,
    sweeps,
    lifetimes,
    previews,
    retried_by_itself,
    schedules,
    schedules_by_hand,
    cron_texts,
    types_of_options,
    idempotent,
    ages,
    moments,
    failed_results,
    odd_results,
    streams,
    log_lines,
    taken_back,
    stops,
    searches,
    cursors,
    percentiles,
    empty_queues,
    letters_by_hand,
    odd_settings,
    replays_by_hand,
    async_twins,
    default_arguments,
    lists_of_options,
    names_and_defaults,
    coroutines,
    dispatch,
    paused_from_the_start,
)

__all__ = ["SCENARIOS", "Bench", "Facts"]
