"""Buffer: hold as many jobs in advance as will start soon."""

import pytest

from flexiq_django.worker.buffer import MOST, START_WITHIN, Buffer


def test_nothing_is_held_before_anything_is_known() -> None:
    assert Buffer(8).size == 0


@pytest.mark.parametrize(
    ("concurrency", "seconds", "size"),
    [(8, 0.01, 80), (8, 0.1, 8), (1, 0.1, 1), (8, 0.5, 1), (8, 1.0, 0), (1, 0.2, 0), (8, 60.0, 0)],
)
def test_as_many_as_start_within_a_tenth_of_a_second(
    concurrency: int, seconds: float, size: int
) -> None:
    buffer = Buffer(concurrency)
    buffer.note(seconds)

    assert buffer.size == size
    assert size * seconds <= START_WITHIN * concurrency + 1e-9


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 1e-6])
def test_there_is_a_most(seconds: float) -> None:
    buffer = Buffer(8)
    buffer.note(seconds)

    assert buffer.size == MOST


def test_one_slow_body_is_believed_at_once() -> None:
    buffer = Buffer(8)
    for _ in range(100):
        buffer.note(0.001)
    assert buffer.size == MOST

    buffer.note(2.0)

    assert buffer.size == 0


def test_quick_bodies_have_to_prove_it() -> None:
    buffer = Buffer(8)
    buffer.note(2.0)
    buffer.note(0.001)
    assert buffer.size == 0

    for _ in range(200):
        buffer.note(0.001)

    assert buffer.size == MOST


def test_what_was_known_can_be_forgotten() -> None:
    buffer = Buffer(8)
    buffer.note(0.001)
    buffer.forget()
    assert buffer.size == 0

    buffer.note(0.1)
    assert buffer.size == 8
