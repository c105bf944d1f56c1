"""People who look at the pages, with the rights they have."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

MODELS = (
    *("job", "archivedjob", "deadletter", "worker", "periodictask", "queuestate", "taskstate"),
)

SignIn = Callable[..., Client]


@pytest.fixture
def sign_in(db: None) -> SignIn:
    """A client of a staff user with the permissions given by codename."""

    def sign_in_with(*codenames: str, **fields: bool) -> Client:
        user = User.objects.create_user(
            f"user-{User.objects.count()}", password="x", is_staff=True, **fields
        )
        found = Permission.objects.filter(
            content_type__app_label="flexiq_django", codename__in=codenames
        )
        assert len(found) == len(codenames)
        user.user_permissions.set(found)
        client = Client()
        client.force_login(user)
        return client

    return sign_in_with


@pytest.fixture
def viewer(sign_in: SignIn) -> Client:
    """Staff who may see every page, but no arguments."""
    return sign_in(*(f"view_{model}" for model in MODELS))


@pytest.fixture
def superuser(sign_in: SignIn) -> Client:
    """Somebody who may do all there is."""
    return sign_in(is_superuser=True)
