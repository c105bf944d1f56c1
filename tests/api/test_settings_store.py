"""The settings store of a queue: texts by key, deployment-wide."""

from typing import Any

import pytest

from flexiq_django import Queue
from flexiq_django.exceptions import InvalidOptionError, ReservedSettingError
from flexiq_django.store import settings

pytestmark = pytest.mark.django_db


def test_a_setting_comes_and_goes(queue: Queue) -> None:
    assert queue.get_setting("colour") is None
    assert not queue.delete_setting("colour")

    queue.set_setting("colour", "red")
    queue.set_setting("colour", "blue")

    assert queue.get_setting("colour") == "blue"
    assert queue.list_settings() == {"colour": "blue"}
    assert queue.delete_setting("colour")
    assert queue.list_settings() == {}


def test_every_namespace_sees_the_same(queue: Queue) -> None:
    queue.set_setting("colour", "red")

    assert Queue("other").get_setting("colour") == "red"


def test_empty_keys_and_texts_are_some(queue: Queue) -> None:
    queue.set_setting("", "")

    assert queue.list_settings() == {"": ""}
    assert queue.get_setting("") == ""


def test_compare_and_set(queue: Queue) -> None:
    assert not queue.set_setting_if("colour", "red", "blue")
    assert queue.set_setting_if("colour", None, "red")
    assert not queue.set_setting_if("colour", None, "blue")
    assert not queue.set_setting_if("colour", "RED", "blue")
    assert queue.set_setting_if("colour", "red", "blue")
    assert queue.get_setting("colour") == "blue"


def test_keys_of_the_queue_itself_are_listed(queue: Queue) -> None:
    queue.set_min_contract(queue.min_contract())

    assert queue.list_settings() == {"contract:min_sdk": "2"}


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("contract:min_sdk", r"set_min_contract\(\)"),
        ("contract:", r"set_min_contract\(\)"),
        ("retention:effective:default", "RETENTION"),
    ],
)
def test_keys_of_the_queue_itself_are_not_written(queue: Queue, key: str, instead: str) -> None:
    settings.put(queue.place, key, "2")

    for call in (
        lambda: queue.set_setting(key, "garbage"),
        lambda: queue.set_setting_if(key, None, "garbage"),
        lambda: queue.set_setting_if(key, "2", "garbage"),
    ):
        with pytest.raises(ReservedSettingError, match=instead):
            call()

    assert queue.get_setting(key) == "2"
    assert queue.delete_setting(key)


@pytest.mark.parametrize("key", ["contract", "Contract:min_sdk", "my contract:a", "retention"])
def test_keys_that_look_alike_are_anybodys(queue: Queue, key: str) -> None:
    queue.set_setting(key, "v")

    assert queue.list_settings() == {key: "v"}


@pytest.mark.parametrize("bad", [None, 5, b"a", ["a"], {"a": 1}, True])
def test_anything_but_a_text_is_a_type_error(queue: Queue, bad: Any) -> None:
    for call in (
        lambda: queue.set_setting("k", bad),
        lambda: queue.set_setting(bad, "v"),
        lambda: queue.get_setting(bad),
        lambda: queue.delete_setting(bad),
        lambda: queue.set_setting_if("k", None, bad),
        lambda: queue.set_setting_if(bad, None, "v"),
    ):
        with pytest.raises(TypeError, match="must be a text"):
            call()
    if bad is not None:
        with pytest.raises(TypeError, match=r"^expected is"):
            queue.set_setting_if("k", bad, "v")
    assert queue.list_settings() == {}


@pytest.mark.parametrize("key", ["x" * 201, " a", "a ", "\ta", "a\n"])
def test_a_key_that_no_database_tells_apart_is_refused(queue: Queue, key: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"^key is .* at most 200"):
        queue.set_setting(key, "v")


def test_the_longest_key(queue: Queue) -> None:
    queue.set_setting("ä" * 200, "v")

    assert queue.get_setting("ä" * 200) == "v"


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
def test_texts_that_cannot_be_stored_are_refused(queue: Queue, text: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"^value holds"):
        queue.set_setting("k", text)
    with pytest.raises(InvalidOptionError, match=r"^key holds"):
        queue.set_setting(text, "v")
