"""Answers in JSON, and the refusals that views raise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse, JsonResponse


class RefusedError(Exception):
    """The request gets an answer other than the one it asked for."""

    def __init__(
        self, status: int, detail: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


def answer(
    content: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """A JSON answer that no cache keeps: what it tells is for this reader, and soon out of date."""
    response = JsonResponse(content, status=status, headers=dict(headers or {}))
    response["Cache-Control"] = "no-store"
    return response


def refusal(error: RefusedError) -> HttpResponse:
    """The answer to a request that was refused."""
    return answer({"detail": error.detail}, error.status, error.headers)
