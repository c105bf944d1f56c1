"""The OpenAPI description of the surface, made from the tables that the views read by."""

from __future__ import annotations

from typing import Any

from django.conf import settings as django_settings

from flexiq_django import __version__
from flexiq_django.http.endpoints import ENDPOINTS, EVERYWHERE, Endpoint
from flexiq_django.http.parameters import Parameter
from flexiq_django.http.payloads import COMPONENTS, STATUSES

_COUNT = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_MOMENT = {"type": "number", "description": "Epoch seconds."}
_MOMENT_OR_NULL = {"type": ["number", "null"], "description": "Epoch seconds."}

_JOB: dict[str, Any] = {
    "id": {"type": "string", "format": "uuid"},
    "component_type": {"enum": list(COMPONENTS)},
    "component_id": {**_TEXT, "description": "The schedule of a periodic job, else the task."},
    "session_id": _TEXT_OR_NULL,
    "user_id": _TEXT_OR_NULL,
    "status": {"enum": list(STATUSES)},
    "attempt": {**_COUNT, "description": "Executions started so far."},
    "max_attempts": {"type": "integer", "minimum": 1, "description": "The budget of executions."},
    "error": {**_TEXT_OR_NULL, "description": "What the job ended with, in one line."},
    "locked_by": {**_TEXT_OR_NULL, "description": "The worker, while the job runs."},
    "locked_at": {**_MOMENT_OR_NULL, "description": "When its lease was last renewed."},
    "idempotency_key": _TEXT_OR_NULL,
    "payload": {"description": "The stored arguments; null for who may not see them."},
    "created_at": _MOMENT,
    "updated_at": _MOMENT,
    "completed_at": _MOMENT_OR_NULL,
}


def describe(base: str) -> dict[str, Any]:
    """The description; ``base`` is the path that all endpoints are below, with its last slash."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "flexiq_django operator surface",
            "version": __version__,
            "description": "Counts, listings and requeue of background jobs.",
        },
        "paths": {
            f"{base}{each.path}": {each.method.lower(): _operation(each)} for each in ENDPOINTS
        },
        "components": {"schemas": _schemas(), "securitySchemes": _security()},
        "security": [{"token": []}, {"session": []}],
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    answers = {**EVERYWHERE, **endpoint.answers}
    parameters = [_parameter(each) for each in endpoint.parameters]
    if "{job_id}" in endpoint.path:
        parameters.insert(0, _path_parameter())
    return {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": parameters,
        "responses": {
            "200": _response("As asked.", endpoint.content),
            **{str(code): _response(answers[code], "Refusal") for code in sorted(answers)},
        },
    }


def _path_parameter() -> dict[str, Any]:
    return {
        "name": "job_id",
        "in": "path",
        "required": True,
        "description": "The id of the job. A text that is no id is the id of no job.",
        "schema": {"type": "string", "format": "uuid"},
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": parameter.name,
        "in": "query",
        "description": parameter.description,
        "schema": _value(parameter),
    }
    if isinstance(parameter.default, tuple):
        described |= {"style": "form", "explode": True}
    return described


def _value(parameter: Parameter) -> dict[str, Any]:
    default = parameter.default
    if isinstance(default, tuple):
        return {"type": "array", "items": {"type": "string", "enum": list(parameter.choices)}}
    if isinstance(default, bool):
        return {"type": "boolean", "default": default}
    if isinstance(default, int):
        return {
            "type": "integer",
            "minimum": parameter.least,
            "maximum": parameter.most,
            "default": default,
        }
    if parameter.known:
        return {"type": "string", "default": default, "examples": list(parameter.known)}
    return {"type": "string", "enum": list(parameter.choices), "default": default}


def _response(text: str, schema: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": text, "content": content}


def _schemas() -> dict[str, Any]:
    job = {"$ref": "#/components/schemas/Job"}
    names = ("page", "limit", "total_pages", "total_count")
    return {
        "Job": _object(_JOB),
        "Page": _object(
            {"data": {"type": "array", "items": job}, "meta": _object(dict.fromkeys(names, _COUNT))}
        ),
        "Stats": _object(
            {
                "counts": _object(dict.fromkeys(STATUSES, _COUNT)),
                "oldest_queued_age_seconds": {
                    "type": ["number", "null"],
                    "minimum": 0,
                    "description": "Of the jobs that could be claimed now; null without one.",
                },
            }
        ),
        "Refusal": _object({"detail": _TEXT}),
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _security() -> dict[str, Any]:
    return {
        "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": str(django_settings.SESSION_COOKIE_NAME),
            "description": "A session of staff. POST needs the CSRF token as well.",
        },
    }
