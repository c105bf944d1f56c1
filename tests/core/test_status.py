"""The states of a job and the moves between them."""

import re
from pathlib import Path

import pytest

from flexiq_django.core.status import (
    COUNT_KEYS,
    TERMINAL,
    TRANSITIONS,
    JobStatus,
    can_move,
    count_key,
    parse_status,
)
from flexiq_django.exceptions import InvalidOptionError, UnknownStatusError

P, R, W = JobStatus.PENDING, JobStatus.RUNNING, JobStatus.PAUSED
C, F, D, X = JobStatus.COMPLETE, JobStatus.FAILED, JobStatus.DEAD, JobStatus.CANCELLED

MOVES = {(P, R), (P, X), (R, P), (R, W), (R, C), (R, D), (R, X), (W, P), (W, X),
         (F, P), (D, P), (X, P)}  # fmt: skip


def test_the_words() -> None:
    assert [status.value for status in JobStatus] == [
        "pending", "running", "paused", "complete", "failed", "dead", "cancelled"
    ]  # fmt: skip
    assert f"{JobStatus.DEAD}" == JobStatus.DEAD == "dead"


def test_the_ends() -> None:
    assert {C, F, D, X} == TERMINAL


@pytest.mark.parametrize("source", JobStatus)
@pytest.mark.parametrize("target", JobStatus)
def test_every_move_is_allowed_or_not(source: JobStatus, target: JobStatus) -> None:
    assert can_move(source, target) is ((source, target) in MOVES)


def test_every_status_has_its_row() -> None:
    assert set(TRANSITIONS) == set(JobStatus)


def test_nothing_moves_to_failed_which_is_reserved() -> None:
    assert not any(F in targets for targets in TRANSITIONS.values())


def test_a_complete_job_stays_so() -> None:
    assert TRANSITIONS[C] == frozenset()


@pytest.mark.parametrize("status", JobStatus)
def test_a_status_is_parsed_from_its_word(status: JobStatus) -> None:
    assert parse_status(status.value) is status
    assert parse_status(status) is status


def test_completed_is_an_alias() -> None:
    assert parse_status("completed") is C


@pytest.mark.parametrize("word", ["canceled", "PENDING", "", " pending", "queued", "done"])
def test_another_word_is_told_the_known_ones(word: str) -> None:
    with pytest.raises(UnknownStatusError) as caught:
        parse_status(word)

    assert isinstance(caught.value, InvalidOptionError)
    assert str(caught.value) == (
        f"status is {word!r}; allowed are pending, running, paused, complete, failed, dead,"
        " cancelled (and completed for complete)"
    )


def test_counts_have_six_keys() -> None:
    assert COUNT_KEYS == ("pending", "running", "completed", "failed", "dead", "cancelled")
    assert {count_key(status) for status in JobStatus} - {"paused"} == set(COUNT_KEYS)
    assert count_key("complete") == count_key(C) == "completed"


def test_the_picture_shows_every_status() -> None:
    picture = Path(__file__).parents[2] / "docs" / "images" / "states.svg"
    if not picture.exists():
        pytest.skip("the picture is not drawn yet")
    words = set(re.findall(r"[a-z]+", picture.read_text()))

    assert {status.value for status in JobStatus} - {"failed"} <= words
