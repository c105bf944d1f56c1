"""Metadata of a job that came back from a dead letter: ours is added, nothing of theirs is lost."""

import json
from uuid import UUID

import pytest

from flexiq_django.core.chain import mark_chain

ORIGIN = UUID("01900000-0000-7000-8000-000000000001")
OTHER = UUID("01900000-0000-7000-8000-000000000002")
MARK = {"__dlq_retry_count": 1, "__origin_job_id": str(ORIGIN)}


def marked(metadata: str | None, retries: int = 1, origin: UUID = ORIGIN) -> str:
    text = mark_chain(metadata, retries=retries, origin=origin)
    assert text is not None
    return text


def test_no_metadata_becomes_an_object() -> None:
    assert json.loads(marked(None)) == MARK


@pytest.mark.parametrize("text", ["{}", " { } ", "{\n}"])
def test_an_empty_object(text: str) -> None:
    assert json.loads(marked(text)) == MARK


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {}}',
        '{"order": 7, "name": "Zoë"}',
        '{"a":[1,{"b":"}"}]} ',
        '{"__dlq_retry_count": "x"}',
    ],
)
def test_the_entries_of_an_object_stay(text: str) -> None:
    assert json.loads(marked(text)) == {**json.loads(text), **MARK}


@pytest.mark.parametrize(
    "text", ['{"a": 1e400}', '{"a": 0.10000000000000000001}', '{"a":1, "a":2}']
)
def test_what_json_in_python_would_change_is_kept_to_the_letter(text: str) -> None:
    assert marked(text).startswith(text[:-1])


@pytest.mark.parametrize(
    "text", ["", "order 7", "[1]", '"text"', "null", "3", '{"a": 1', "{'a': 1}", "[" * 100_000]
)
def test_what_is_no_object_stays(text: str) -> None:
    assert marked(text) == text


@pytest.mark.parametrize("text", [None, "{}", '{"order": 7}', '{"a": {"b": []}}'])
def test_marking_again_replaces_the_mark(text: str | None) -> None:
    once = marked(text)
    again = marked(once, retries=12, origin=OTHER)

    assert json.loads(again) == {
        **json.loads(text or "{}"),
        "__dlq_retry_count": 12,
        "__origin_job_id": str(OTHER),
    }
    assert again.count("__dlq_retry_count") == 1
    assert marked(again) == once
