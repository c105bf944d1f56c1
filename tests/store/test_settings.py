"""The settings store: texts by key, and a compare-and-set with exactly one winner."""

import pytest
from django.db import transaction

from flexiq_django.exceptions import SettingConflictError
from flexiq_django.models import Setting
from flexiq_django.store import settings
from tests.concurrency import OtherConnection, run_in_threads
from tests.factories import NOW, at, later

pytestmark = pytest.mark.django_db


def test_a_text_is_stored_under_its_key() -> None:
    assert settings.get(at(), "a") is None

    settings.put(at(), "a", "one")
    settings.put(at(5), "a", "two")

    assert settings.get(at(), "a") == "two"
    assert Setting.objects.get().updated_at == later(5)


def test_keys_and_texts_are_told_apart_byte_for_byte() -> None:
    for key in ("a", "A", "ä", "", "x" * 200):
        settings.put(at(), key, f"<{key}>")

    assert settings.everything(at()) == {key: f"<{key}>" for key in ("a", "A", "ä", "", "x" * 200)}


@pytest.mark.parametrize("text", ["", " ", "a ", "null", "{}", "ä€😀", "x" * 1_000_000])
def test_texts_come_back_unchanged(text: str) -> None:
    settings.put(at(), "a", text)

    assert settings.get(at(), "a") == text
    assert settings.put_if(at(), "a", text, "next")


def test_deleting() -> None:
    settings.put(at(), "a", "one")

    assert settings.remove(at(), "a")
    assert not settings.remove(at(), "a")
    assert settings.everything(at()) == {}


def test_a_store_for_every_namespace() -> None:
    settings.put(at(namespace="one"), "a", "x")

    assert settings.get(at(namespace="two"), "a") == "x"


@pytest.mark.parametrize(
    ("held", "expected", "is_stored"),
    [
        (None, None, True),
        (None, "", False),
        ("", None, False),
        ("", "", True),
        ("a", "a", True),
        ("a", "A", False),
        ("a", "a ", False),
        ("a ", "a", False),
        ("a", "b", False),
    ],
)
def test_compare_and_set(held: str | None, expected: str | None, is_stored: bool) -> None:
    if held is not None:
        settings.put(at(), "k", held)

    assert settings.put_if(at(7), "k", expected, "new") is is_stored

    assert settings.get(at(), "k") == ("new" if is_stored else held)
    if is_stored:
        assert Setting.objects.get().updated_at == later(7)


def test_a_refused_set_leaves_the_transaction_alone() -> None:
    settings.put(at(), "k", "held")
    with transaction.atomic():
        settings.put(at(), "other", "before")
        assert not settings.put_if(at(), "k", None, "new")
        settings.put(at(), "more", "after")

    assert settings.everything(at()) == {"k": "held", "more": "after", "other": "before"}


def test_a_key_that_can_neither_be_updated_nor_inserted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_update", lambda *_: False)
    monkeypatch.setattr(settings, "_insert", lambda *_: False)

    with pytest.raises(SettingConflictError, match="'k'"):
        settings.put(at(), "k", "v")


# --- two at once ----------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("held", [None, "old"])
def test_of_those_that_expect_the_same_exactly_one_wins(held: str | None) -> None:
    for turn in range(10):
        key = f"k{turn}"
        if held is not None:
            settings.put(at(), key, held)

        won = run_in_threads(
            [lambda name=name, key=key: settings.put_if(at(), key, held, name) for name in "abcd"]  # type: ignore[misc]
        )

        assert sum(won) == 1
        assert settings.get(at(), key) == "abcd"[won.index(True)]


@pytest.mark.django_db(transaction=True)
def test_those_that_count_lose_no_step() -> None:
    settings.put(at(), "n", "0")

    def count() -> None:
        for _ in range(10):
            while True:
                seen = settings.get(at(), "n")
                assert seen is not None
                if settings.put_if(at(), "n", seen, str(int(seen) + 1)):
                    break

    run_in_threads([count] * 3)

    assert settings.get(at(), "n") == "30"


@pytest.mark.django_db(transaction=True)
def test_the_first_to_store_a_new_key_and_the_last_to_store_it() -> None:
    for turn in range(10):
        key = f"k{turn}"
        run_in_threads(
            [lambda name=name, key=key: settings.put(at(), key, name) for name in "abcd"]  # type: ignore[misc]
        )
        assert settings.get(at(), key) in set("abcd")


@pytest.mark.django_db(transaction=True)
@pytest.mark.row_locks
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_key_that_another_transaction_is_inserting_is_waited_for(
    other_connection: OtherConnection, is_kept: bool
) -> None:
    def insert() -> None:
        transaction.set_autocommit(False)
        assert settings.put_if(at(), "k", None, "theirs")

    other_connection.run(insert)
    end = other_connection.submit(transaction.commit if is_kept else transaction.rollback)

    assert settings.put_if(at(), "k", None, "ours") is not is_kept
    end.result(10)
    assert settings.get(at(), "k") == ("theirs" if is_kept else "ours")


def test_updated_at_is_the_clock_of_the_scope() -> None:
    settings.put(at(), "k", "v")

    assert Setting.objects.get().updated_at == NOW
