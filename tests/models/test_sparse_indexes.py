"""Sparse indexes are partial where the database has that, and plain where it has not."""

import pytest
from django.apps import apps
from django.core.checks import run_checks
from django.db import connections, models

from flexiq_django.models import Job
from flexiq_django.models.fields import SparseIndex, SparseUniqueConstraint

Part = SparseIndex | SparseUniqueConstraint

STORED = {
    "sqlite": "SELECT sql FROM sqlite_master WHERE name = %s",
    "postgresql": "SELECT indexdef FROM pg_indexes WHERE indexname = %s",
}


connection = connections["default"]


def sparse_parts() -> list[tuple[type[models.Model], Part]]:
    return [
        (model, part)
        for model in apps.get_app_config("flexiq_django").get_models()
        for part in [*model._meta.indexes, *model._meta.constraints]
        if isinstance(part, Part)
    ]


PARTS = sparse_parts()
every_part = pytest.mark.parametrize(("model", "part"), PARTS, ids=[part.name for _, part in PARTS])


def create_sql(model: type[models.Model], part: Part) -> str:
    return str(part.create_sql(model, connection.schema_editor(collect_sql=True)))


def only_present(part: Part) -> str:
    return f"WHERE {connection.ops.quote_name(part.present)} IS NOT NULL"


def test_the_hot_indexes_are_sparse() -> None:
    assert {part.name for model, part in PARTS if model is Job} == {
        "flexiq_jobs_claim",
        "flexiq_jobs_promote",
        "flexiq_jobs_lease",
        "flexiq_jobs_ended",
        "flexiq_jobs_idle",
        "flexiq_jobs_bad_end",
        "flexiq_jobs_expires",
        "flexiq_jobs_purge",
        "flexiq_jobs_active_key",
        "flexiq_jobs_line",
        "flexiq_jobs_session_slot",
    }


@every_part
def test_the_column_that_must_be_present_is_indexed(model: type[models.Model], part: Part) -> None:
    assert part.present in part.fields
    assert model._meta.get_field(part.present).null


@pytest.mark.django_db
@every_part
def test_it_is_partial_where_the_database_can(model: type[models.Model], part: Part) -> None:
    sql = create_sql(model, part)

    assert sql.startswith(("CREATE", "ALTER"))
    assert (only_present(part) in sql) is (connection.vendor != "mysql")
    assert ("WHERE" in sql) is (connection.vendor != "mysql")


@pytest.mark.django_db
@every_part
def test_it_is_plain_where_the_database_cannot(
    model: type[models.Model], part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection.features, "supports_partial_indexes", False)

    sql = create_sql(model, part)

    assert part.name in sql
    assert "WHERE" not in sql


@pytest.mark.django_db
@every_part
def test_the_migrated_table_has_it(model: type[models.Model], part: Part) -> None:
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, model._meta.db_table)[part.name]
        assert found["columns"] == list(part.fields)
        assert found["unique"] is isinstance(part, SparseUniqueConstraint)
        if connection.vendor in STORED:
            cursor.execute(STORED[connection.vendor], [part.name])
            (definition,) = cursor.fetchone()
            assert f"{part.present} IS NOT NULL" in definition.replace('"', "")


@every_part
def test_it_survives_a_migration_file(model: type[models.Model], part: Part) -> None:
    path, args, kwargs = part.deconstruct()
    again = type(part)(*args, **kwargs)

    assert path == f"flexiq_django.models.fields.{type(part).__name__}"
    assert again == part
    assert again.present == part.present


def test_no_system_check_complains() -> None:
    models_of_ours = [apps.get_app_config("flexiq_django")]

    assert run_checks(app_configs=models_of_ours, tags=["models"], databases=["default"]) == []
