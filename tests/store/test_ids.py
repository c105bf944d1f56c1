"""Ids: valid UUIDs of version 7, in the order they were made, also across threads."""

import json
import os
import threading
import time
from uuid import RFC_4122, UUID

import pytest

from flexiq_django.store import ids
from tests.concurrency import run_in_threads


def test_an_id_is_a_uuid_of_version_7_with_the_time_in_front() -> None:
    before = time.time_ns() // 1_000_000
    key = ids.new_id()
    after = time.time_ns() // 1_000_000

    assert key.version == 7
    assert key.variant == RFC_4122
    # A bulk made earlier in this process may have run ahead of the clock.
    assert before <= key.int >> 80 <= max(after, ids._last_ms)
    assert UUID(str(key)) == key


def test_an_id_survives_javascript() -> None:
    text = str(ids.new_id())

    assert json.loads(json.dumps(text)) == text
    assert len(text) == 36


def test_a_bulk_ascends_far_beyond_one_millisecond() -> None:
    bulk = ids.new_ids(10_000)

    assert bulk == sorted(set(bulk))
    assert len(bulk) == 10_000
    assert {key.version for key in bulk} == {7}
    assert {key.variant for key in bulk} == {RFC_4122}
    assert ids.new_id() > bulk[-1]


def test_texts_sort_as_the_ids_do() -> None:
    bulk = ids.new_ids(5_000)

    assert sorted(map(str, bulk)) == [str(key) for key in bulk]
    assert sorted(key.hex for key in bulk) == [key.hex for key in bulk]
    assert sorted(key.bytes for key in bulk) == [key.bytes for key in bulk]


def test_no_ids_for_none() -> None:
    assert ids.new_ids(0) == []


def test_threads_get_ids_of_their_own_each_in_order() -> None:
    made = run_in_threads([lambda: [ids.new_id() for _ in range(1_000)]] * 8)

    assert len({key for each in made for key in each}) == 8_000
    assert all(each == sorted(each) for each in made)


def test_a_clock_that_goes_back_does_not_take_the_ids_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = ids.new_id()
    monkeypatch.setattr(ids, "_last_ms", ids._last_ms + 3_600_000)
    ahead = ids.new_id()

    assert first < ahead < ids.new_id()


def test_two_ids_of_one_moment_differ_in_random_bits() -> None:
    one, other = ids.new_ids(2)

    assert one.int & (2**62 - 1) != other.int & (2**62 - 1)


def test_a_child_process_can_make_ids_while_the_parent_holds_the_lock() -> None:
    reader, writer = os.pipe()
    with ids._lock:
        child = os.fork() if threading.active_count() == 1 else None
        if child == 0:
            os.write(writer, b"1" if ids.new_id().version == 7 else b"0")
            os._exit(0)
    if child is None:
        pytest.skip("other threads are running: a fork would not be safe")
    os.close(writer)
    os.waitpid(child, 0)

    assert os.read(reader, 1) == b"1"
    os.close(reader)


def test_a_token_fits_a_signed_column_and_is_not_guessed() -> None:
    tokens = {ids.new_token() for _ in range(1_000)}

    assert len(tokens) == 1_000
    assert all(0 <= token < 2**63 for token in tokens)
    assert max(tokens) > 2**60
