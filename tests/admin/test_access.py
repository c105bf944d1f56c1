"""Who sees what, and that nobody changes anything."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from flexiq_django.models import ArchivedJob, DeadLetter, Job, PeriodicTask, QueueState, Worker
from tests.admin import rows
from tests.admin.conftest import MODELS, SignIn

SECRET = "the-secret-argument"
HIDDEN = "you lack the permission"


@pytest.fixture
def pages(db: None) -> dict[str, str]:
    """The address of every page, with a row in each table."""
    found = {
        "job": rows.make_job("complete", payload=rows.call(SECRET)),
        "archivedjob": rows.make_archived(payload=rows.call(SECRET)),
        "deadletter": rows.make_dead_letter(payload=rows.call(SECRET)),
        "worker": rows.make_worker(),
        "periodictask": rows.make_schedule(payload=rows.call(SECRET)),
        "queuestate": rows.pause_queue(),
        "taskstate": rows.make_task(revoked_at=rows.NOW),
    }
    pages = {
        f"{model}-list": reverse(f"admin:flexiq_django_{model}_changelist") for model in MODELS
    }
    for model, row in found.items():
        pages[model] = reverse(f"admin:flexiq_django_{model}_change", args=[row.pk])
    return pages


def test_every_page_opens_for_a_superuser(superuser: Client, pages: dict[str, str]) -> None:
    for path in pages.values():
        assert superuser.get(path).status_code == 200, path


def test_every_page_opens_for_staff_who_may_view(viewer: Client, pages: dict[str, str]) -> None:
    for path in pages.values():
        assert viewer.get(path).status_code == 200, path


def test_staff_without_rights_are_refused(sign_in: SignIn, pages: dict[str, str]) -> None:
    client = sign_in()
    for path in pages.values():
        assert client.get(path).status_code == 403, path
    assert "flexiq_django" not in client.get(reverse("admin:index")).text


def test_the_right_to_see_jobs_opens_no_other_page(sign_in: SignIn, pages: dict[str, str]) -> None:
    client = sign_in("view_job")
    allowed = {name for name, path in pages.items() if client.get(path).status_code == 200}
    assert allowed == {"job", "job-list"}


def test_strangers_are_sent_to_the_login(
    client: Client, sign_in: SignIn, pages: dict[str, str]
) -> None:
    inactive = sign_in("view_job", is_active=False)
    for path in pages.values():
        for stranger in (client, inactive):
            answer = stranger.get(path)
            assert answer.status_code == 302
            assert answer["Location"].startswith(reverse("admin:login"))


@pytest.mark.parametrize("model", MODELS)
def test_nothing_can_be_added_changed_or_deleted(
    superuser: Client, pages: dict[str, str], model: str
) -> None:
    path = pages[model]
    tables = (Job, ArchivedJob, DeadLetter, Worker, PeriodicTask, QueueState)
    before = [list(table.objects.values()) for table in tables]
    assert superuser.get(path.replace("/change/", "/delete/")).status_code == 403
    assert superuser.post(path.replace("/change/", "/delete/"), {"post": "yes"}).status_code == 403
    assert superuser.get(reverse(f"admin:flexiq_django_{model}_add")).status_code == 403
    assert superuser.post(reverse(f"admin:flexiq_django_{model}_add")).status_code == 403
    assert superuser.post(path, {"status": "complete", "enabled": ""}).status_code == 403
    selected = {"action": "delete_selected", "_selected_action": [path.split("/")[-3]], "index": 0}
    superuser.post(pages[f"{model}-list"], selected)
    form = {"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1, "form-0-id": "x", "_save": "Save"}
    superuser.post(pages[f"{model}-list"], form)
    assert [list(table.objects.values()) for table in tables] == before


def test_pages_offer_no_button_that_changes_anything(
    superuser: Client, pages: dict[str, str]
) -> None:
    for path in pages.values():
        page = superuser.get(path).text
        assert "_save" not in page
        assert "deletelink" not in page
        assert "addlink" not in page.partition("id='content'")[2]
        assert "<script>" not in page


@pytest.mark.parametrize("model", ["job", "archivedjob", "deadletter", "periodictask"])
def test_arguments_need_their_permission(
    sign_in: SignIn, viewer: Client, pages: dict[str, str], model: str
) -> None:
    masked = viewer.get(pages[model]).text
    assert SECRET not in masked
    assert HIDDEN in masked
    open_to = sign_in(f"view_{model}", "view_payload")
    shown = open_to.get(pages[model]).text
    assert SECRET in shown
    assert HIDDEN not in shown


def test_results_need_the_permission_too(sign_in: SignIn, viewer: Client, db: None) -> None:
    job = rows.make_job("complete", payload=rows.call())
    path = reverse("admin:flexiq_django_job_change", args=[job.pk])
    assert "28000" not in viewer.get(path).text
    assert "28000" in sign_in("view_job", "view_payload").get(path).text


@pytest.mark.parametrize(
    "query",
    [
        "payload__contains=secret",
        "payload=x",
        "result__startswith=1",
        "error__icontains=a",
        "id__gt=0",
        "queue__in=a,b",
    ],
)
def test_no_other_condition_can_be_put_into_the_address(
    superuser: Client, pages: dict[str, str], query: str
) -> None:
    assert superuser.get(f"{pages['job-list']}?{query}").status_code == 400


def test_the_permissions_are_there(db: None) -> None:
    codenames = set(
        Permission.objects.filter(
            content_type__app_label="flexiq_django", content_type__model="job"
        ).values_list("codename", flat=True)
    )
    doing = {"cancel_job", "stop_job", "requeue_job", "replay_job", "continue_job"}
    assert codenames == {"view_job", "view_payload", "operate_queue"} | doing


def test_a_project_can_put_its_own_page_in_the_place_of_ours() -> None:
    ours = type(admin.site.get_model_admin(Job))

    class Theirs(ours):  # type: ignore[misc, valid-type]
        list_filter = (*ours.list_filter, "origin")

    site = admin.AdminSite()
    site.register(Job, Theirs)
    page = site.get_model_admin(Job)
    assert not page.check()
    assert page.lookup_allowed("origin__exact", "task", None)
    assert not page.lookup_allowed("payload__contains", "x", None)
