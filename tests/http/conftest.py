"""The surface switched on, clients with a token or a session, and what they ask."""

import json
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

SECRET = "a secret for tests, of enough bytes"
RULES = {"ENABLED": True, "JWT": {"KEY": SECRET, "ALGORITHMS": ["HS256"]}}


def token(*scopes: str, key: str = SECRET, **claims: Any) -> str:
    """A signed token with these scopes."""
    return jwt.encode({"sub": "ops", "scope": " ".join(scopes), **claims}, key, algorithm="HS256")


class Caller:
    """A client that sends the same headers with every request."""

    def __init__(self, client: Client, **headers: str) -> None:
        self._client, self._headers = client, headers

    def get(self, path: str, query: Any = None) -> Any:
        """A response with its status and what it says."""
        return self._client.get(f"/queue/{path}", query, headers=self._headers)

    def head(self, path: str) -> Any:
        """The same without what it says."""
        return self._client.head(f"/queue/{path}", headers=self._headers)

    def post(self, path: str) -> Any:
        """The same of a POST."""
        return self._client.post(f"/queue/{path}", headers=self._headers)

    def ids(self, **query: Any) -> list[str]:
        """The ids of a page of jobs."""
        return [each["id"] for each in self.get("jobs", query).json()["data"]]


@pytest.fixture
def surface(settings: Any) -> Any:
    """Switch the surface on; the settings, to change it."""
    settings.FLEXIQ = {**settings.FLEXIQ, "OPERATOR": RULES}
    return settings


@pytest.fixture
def admin(surface: Any) -> Caller:
    """Whoever has the scope."""
    return Caller(Client(), Authorization=f"Bearer {token('admin')}")


@pytest.fixture
def make_user(django_user_model: type[User]) -> Callable[..., User]:
    """A member of staff with these permissions of ours."""

    def make(*permissions: str, **fields: Any) -> User:
        number = django_user_model.objects.count()
        user = django_user_model.objects.create_user(
            **{"username": f"user-{number}", "password": "p", "is_staff": True, **fields}
        )
        found = Permission.objects.filter(
            content_type__app_label="flexiq_django", codename__in=permissions
        )
        assert len(found) == len(permissions)
        user.user_permissions.set(found)
        return user

    return make


def detail(response: Any) -> str:
    """The reason of a refusal, which must be JSON and nothing else."""
    assert response["Content-Type"] == "application/json"
    assert response["Cache-Control"] == "no-store"
    content = json.loads(response.content)
    assert list(content) == ["detail"]
    return str(content["detail"])
