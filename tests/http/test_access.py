"""Who is let in: tokens, sessions, and when nobody is."""

import sys
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from django.contrib.auth.models import User
from django.db import ProgrammingError, connection
from django.test import Client

from flexiq_django.core.contract import FLOOR_KEY
from flexiq_django.http import views
from flexiq_django.models import Setting
from tests.factories import JobFactory, later
from tests.http.conftest import RULES, SECRET, Caller, detail, token

pytestmark = pytest.mark.django_db

Make = Callable[..., User]

PATHS = ["stats", "jobs", "jobs/01900000-0000-7000-8000-000000000000", "openapi.json", "else"]


def with_token(text: str) -> Caller:
    return Caller(Client(), Authorization=f"Bearer {text}")


# --- tokens ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "claims",
    [
        {"scope": "admin"},
        {"scope": "read admin write"},
        {"scope": ["read", "admin"]},
        {"scope": "read", "scopes": ["admin"]},
        {"scope": "admin", "exp": 4_000_000_000},
    ],
    ids=str,
)
def test_a_token_with_the_scope_is_let_in(surface: Any, claims: dict[str, Any]) -> None:
    assert with_token(token(**claims)).get("stats").status_code == 200


@pytest.mark.parametrize("scope", ["", "read", "administrator", "Admin", ["admins"], 5, None])
def test_a_token_without_the_scope_is_refused(surface: Any, scope: Any) -> None:
    for response in (
        with_token(token(scope=scope)).get("stats"),
        with_token(token(scope=scope)).post("jobs/x/requeue"),
    ):
        assert response.status_code == 403
        assert detail(response) == "the token lacks the scope admin"
        assert 'error="insufficient_scope"' in response["WWW-Authenticate"]


def unsigned() -> str:
    return jwt.encode({"scope": "admin"}, None, algorithm="none")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (lambda: "", "not valid"),
        (lambda: "a.b.c", "not valid"),
        (lambda: token("admin", key="another secret, as long as needed"), "not valid"),
        (lambda: token("admin") + "x", "not valid"),
        (unsigned, "not valid"),
        (lambda: jwt.encode({"scope": "admin"}, SECRET * 2, algorithm="HS512"), "not valid"),
        (lambda: token("admin", exp=int(time.time()) - 60), "has expired"),
        (lambda: token("admin", nbf=int(time.time()) + 3600), "not valid"),
        (lambda: token("admin", aud="others"), "not valid"),
    ],
)
def test_a_token_that_is_not_valid_is_nobody(
    surface: Any, text: Callable[[], str], said: str
) -> None:
    response = with_token(text()).get("stats")

    assert response.status_code == 401
    assert said in detail(response)
    assert response["WWW-Authenticate"] == 'Bearer realm="flexiq", error="invalid_token"'


def test_audience_issuer_and_scopes_are_the_settings(surface: Any) -> None:
    rules = {**RULES["JWT"], "AUDIENCE": "ops", "ISSUER": "us", "SCOPE": "q", "LEEWAY": 30}  # type: ignore[dict-item]
    surface.FLEXIQ = {**surface.FLEXIQ, "OPERATOR": {"ENABLED": True, "JWT": rules}}
    right = {"aud": ["ops", "more"], "iss": "us", "exp": int(time.time()) - 5}

    assert with_token(token("q", **right)).get("stats").status_code == 200
    assert with_token(token("admin", **right)).get("stats").status_code == 403
    for wrong in ({"aud": "web"}, {"iss": "them"}, {"exp": int(time.time()) - 60}):
        assert with_token(token("q", **{**right, **wrong})).get("stats").status_code == 401


def test_a_pair_of_keys(surface: Any) -> None:
    private = ed25519.Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    rules = {"KEY": public.decode(), "ALGORITHMS": ["EdDSA"]}
    surface.FLEXIQ = {**surface.FLEXIQ, "OPERATOR": {"ENABLED": True, "JWT": rules}}

    right = jwt.encode({"scope": "admin"}, private, algorithm="EdDSA")
    assert with_token(right).get("stats").status_code == 200
    assert with_token(token("admin")).get("stats").status_code == 401


def test_a_key_that_is_none_switches_off(surface: Any, caplog: pytest.LogCaptureFixture) -> None:
    rules = {"KEY": "no PEM", "ALGORITHMS": ["EdDSA"]}
    surface.FLEXIQ = {**surface.FLEXIQ, "OPERATOR": {"ENABLED": True, "JWT": rules}}
    text = jwt.encode({"scope": "admin"}, ed25519.Ed25519PrivateKey.generate(), algorithm="EdDSA")

    response = with_token(text).get("stats")

    assert response.status_code == 503
    assert "cannot be verified" in detail(response)
    assert "cannot be used" in caplog.text


def test_an_algorithm_that_the_key_is_not_for_is_nobody(
    surface: Any, caplog: pytest.LogCaptureFixture
) -> None:
    # Both are allowed, but the key is of the curve of one. The token is made up.
    private = ec.generate_private_key(ec.SECP256R1())
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    rules = {"KEY": public.decode(), "ALGORITHMS": ["ES256", "ES384"]}
    surface.FLEXIQ = {**surface.FLEXIQ, "OPERATOR": {"ENABLED": True, "JWT": rules}}
    stranger = ec.generate_private_key(ec.SECP384R1())

    right = jwt.encode({"scope": "admin"}, private, algorithm="ES256")
    assert with_token(right).get("stats").status_code == 200
    response = with_token(jwt.encode({"scope": "admin"}, stranger, algorithm="ES384")).get("stats")
    assert (response.status_code, detail(response)) == (401, "the token is not valid")
    assert "cannot be used" not in caplog.text


def test_without_its_package_no_token_is_let_in(
    surface: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = token("admin")
    monkeypatch.setitem(sys.modules, "jwt", None)

    response = with_token(text).get("stats")

    assert response.status_code == 503
    assert "PyJWT is not installed" in detail(response)


def test_a_token_decides_alone(surface: Any, make_user: Make, client: Client) -> None:
    client.force_login(make_user("operate_queue"))
    assert Caller(client).get("stats").status_code == 200
    assert Caller(client, Authorization="Basic xyz").get("stats").status_code == 200
    assert Caller(client, Authorization="bearer x").get("stats").status_code == 401

    surface.FLEXIQ = {**surface.FLEXIQ, "OPERATOR": {"ENABLED": True}}
    response = Caller(client, Authorization=f"Bearer {token('admin')}").get("stats")
    assert (response.status_code, detail(response)) == (
        401,
        "bearer tokens are not accepted here",
    )


# --- sessions -------------------------------------------------------------------------------------


def test_staff_with_the_permission_is_let_in(surface: Any, make_user: Make, client: Client) -> None:
    client.force_login(make_user("operate_queue"))
    assert Caller(client).get("stats").status_code == 200


@pytest.mark.parametrize(
    ("permissions", "fields"),
    [
        ([], {}),
        (["view_payload", "view_job"], {}),
        (["operate_queue"], {"is_staff": False}),
        ([], {"is_staff": False, "is_superuser": True}),
    ],
    ids=str,
)
def test_other_users_are_refused(
    surface: Any, make_user: Make, client: Client, permissions: Any, fields: Any
) -> None:
    client.force_login(make_user(*permissions, **fields))

    response = Caller(client).get("stats")

    assert response.status_code == 403
    assert "flexiq_django.operate_queue" in detail(response)


def test_nobody_is_told_to_log_in(surface: Any, make_user: Make, client: Client) -> None:
    response = Caller(client).get("stats")
    assert (response.status_code, detail(response)) == (401, "log in, or send a bearer token")
    assert response["WWW-Authenticate"] == 'Bearer realm="flexiq"'

    user = make_user("operate_queue")
    client.force_login(user)
    user.is_active = False
    user.save()
    assert Caller(client).get("stats").status_code == 401


@pytest.mark.parametrize("has_middleware", [True, False])
def test_a_session_needs_the_csrf_token_to_post(
    surface: Any, make_user: Make, has_middleware: bool
) -> None:
    if not has_middleware:
        surface.MIDDLEWARE = [each for each in surface.MIDDLEWARE if "csrf" not in each]
    job = JobFactory(ended=True, status="dead")
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user("operate_queue"))
    path = f"jobs/{job.id}/requeue"

    refused = Caller(client).post(path)
    assert (refused.status_code, detail(refused)) == (403, "the CSRF token is missing or wrong")

    secret = "t" * 32
    client.cookies["csrftoken"] = secret
    assert Caller(client, **{"X-CSRFToken": "u" * 32}).post(path).status_code == 403
    assert Caller(client, **{"X-CSRFToken": secret}).post(path).status_code == 200


def test_a_token_needs_no_csrf_token(surface: Any) -> None:
    job = JobFactory(ended=True, status="dead", completed_at=later(-9999))
    client = Client(enforce_csrf_checks=True)
    headers = {"Authorization": f"Bearer {token('admin')}"}
    assert Caller(client, **headers).post(f"jobs/{job.id}/requeue").status_code == 200


def test_who_is_not_logged_in_is_sent_to_no_form(surface: Any) -> None:
    surface.MIDDLEWARE = [
        *surface.MIDDLEWARE,
        "django.contrib.auth.middleware.LoginRequiredMiddleware",
    ]
    for path in PATHS:
        assert Caller(Client()).get(path).status_code in (401, 404)


# --- payloads -------------------------------------------------------------------------------------


def test_payloads_only_with_their_permission(surface: Any, make_user: Make, client: Client) -> None:
    job = JobFactory(payload='[["é", {"$decimal": "1.5"}], {"a": 1}]')
    broken = JobFactory(payload="no JSON")
    path = f"jobs/{job.id}"

    for scopes, seen in (
        ("admin", None),
        ("admin view_payload", [["é", {"$decimal": "1.5"}], {"a": 1}]),
    ):
        caller = with_token(token(*scopes.split()))
        assert caller.get(path).json()["payload"] == seen
        assert caller.get("jobs").json()["data"][1]["payload"] == seen
    assert caller.get(f"jobs/{broken.id}").json()["payload"] == "no JSON"

    client.force_login(make_user("operate_queue"))
    assert Caller(client).get(path).json()["payload"] is None
    client.force_login(make_user("operate_queue", "view_payload"))
    assert Caller(client).get(path).json()["payload"] is not None


# --- when nobody is -------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [None, {}, {"ENABLED": False, "JWT": RULES["JWT"]}], ids=str)
def test_a_surface_that_is_off_answers_503(settings: Any, rules: Any) -> None:
    settings.FLEXIQ = {**settings.FLEXIQ, "OPERATOR": rules}
    caller = with_token(token("admin"))
    for response in [*(caller.get(path) for path in PATHS), caller.post("jobs/x/requeue")]:
        assert response.status_code == 503
        assert detail(response) == "the operator surface is not enabled here"


def test_a_database_that_asks_for_a_newer_build_answers_503(admin: Caller) -> None:
    Setting.objects.create(key=FLOOR_KEY, value="999", updated_at=later(0))
    views.queue._open.clear()
    try:
        response = admin.get("stats")
    finally:
        views.queue._open.clear()
    assert response.status_code == 503
    assert "999" in detail(response)


def fail_with(error: Exception) -> Callable[..., Any]:
    def fail(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        raise error

    return fail


def test_an_error_that_is_no_outage_is_not_hidden(admin: Caller) -> None:
    with (
        connection.execute_wrapper(fail_with(ProgrammingError("a bug"))),
        pytest.raises(ProgrammingError),
    ):
        admin.get("stats")
