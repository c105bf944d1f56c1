"""Column and index types that mean the same on SQLite, PostgreSQL, MariaDB and MySQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.ddl_references import Statement


class NameField(models.CharField):  # type: ignore[type-arg] # not generic at run time
    """Text compared byte for byte, so that ``mail`` and ``Mail`` are two queues everywhere.

    MariaDB and MySQL fold case in their default collation; there the column gets a binary one.
    """

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        parameters = super().db_parameters(connection)
        if connection.vendor == "mysql":
            parameters["collation"] = "utf8mb4_bin"
        return parameters


class UtcDateTimeField(models.DateTimeField):  # type: ignore[type-arg]
    """An instant: always stored in UTC and always read as an aware datetime.

    Django's own field stores local wall time under ``USE_TZ = False`` or a per-database
    ``TIME_ZONE``; our rows are written by SQL on the database's clock, which knows neither.
    """

    def get_internal_type(self) -> str:
        # Another name than DateTimeField keeps the backends' zone-dependent converters away.
        return "UtcDateTimeField"

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return str(models.DateTimeField().db_type(connection))

    def get_prep_value(self, value: Any) -> Any:
        return value if _is_expression(value) else self.to_python(value)

    def to_python(self, value: Any) -> datetime | None:
        moment: datetime | None = super().to_python(value)
        if moment is None:
            return None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

    def get_db_prep_value(
        self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False
    ) -> Any:
        moment = value if prepared else self.get_prep_value(value)
        if moment is None or _is_expression(moment):
            return moment
        return moment if connection.vendor == "postgresql" else to_naive_text(moment)

    def from_db_value(self, value: Any, _expression: Any, connection: BaseDatabaseWrapper) -> Any:
        return read_moment(value, connection)


def to_naive_text(moment: datetime) -> str:
    """The text SQLite and MariaDB store for ``moment``: UTC, always with six fractional digits."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def read_moment(value: Any, connection: BaseDatabaseWrapper) -> datetime | None:
    """An aware UTC datetime from what the driver returned for one of our columns."""
    if value is None:
        return None
    moment: datetime = datetime.fromisoformat(value) if isinstance(value, str) else value
    if moment.tzinfo is not None:
        return moment.astimezone(UTC)
    if connection.vendor == "postgresql":
        # Under USE_TZ = False Django's loader drops the zone of the session; put it back.
        return moment.replace(tzinfo=ZoneInfo(connection.timezone_name)).astimezone(UTC)
    return moment.replace(tzinfo=UTC)


def _is_expression(value: Any) -> bool:
    return hasattr(value, "resolve_expression")


class SparseIndex(models.Index):
    """An index of only the rows in which the column ``present`` is not NULL.

    Partial where the database has partial indexes. MariaDB and MySQL have none and get the plain
    index, where the NULLs lie together at one end; a ``condition`` of Django's own would warn there
    (models.W037) and, for a unique constraint, create nothing (models.W036). ``IS NOT NULL`` holds
    no parameter, so a generic plan can use the index as well.
    """

    def __init__(self, *, fields: list[str], name: str, present: str) -> None:
        super().__init__(fields=fields, name=name)
        self.present = present

    def deconstruct(self) -> Any:
        path, args, kwargs = super().deconstruct()
        return path, args, {**kwargs, "present": self.present}

    def create_sql(
        self,
        model: type[models.Model],
        schema_editor: BaseDatabaseSchemaEditor,
        using: str = "",
        **kwargs: Any,
    ) -> Statement:
        index = models.Index(
            fields=self.fields, name=self.name, condition=_present(self.present, schema_editor)
        )
        return index.create_sql(model, schema_editor, using, **kwargs)


class SparseUniqueConstraint(models.UniqueConstraint):
    """Uniqueness among the rows in which the column ``present`` is not NULL.

    NULLs never collide, so the plain constraint says the same; the partial one keeps the NULLs out
    of the index where that is possible.
    """

    def __init__(self, *, fields: list[str], name: str, present: str) -> None:
        super().__init__(fields=fields, name=name)
        self.present = present

    def deconstruct(self) -> Any:
        path, args, kwargs = super().deconstruct()
        return path, args, {**kwargs, "present": self.present}

    def _concrete(self, schema_editor: BaseDatabaseSchemaEditor) -> models.UniqueConstraint:
        return models.UniqueConstraint(
            fields=self.fields, name=self.name, condition=_present(self.present, schema_editor)
        )

    def constraint_sql(self, model: Any, schema_editor: Any) -> Any:
        return self._concrete(schema_editor).constraint_sql(model, schema_editor)

    def create_sql(self, model: Any, schema_editor: Any) -> Any:
        return self._concrete(schema_editor).create_sql(model, schema_editor)

    def remove_sql(self, model: Any, schema_editor: Any) -> Any:
        return self._concrete(schema_editor).remove_sql(model, schema_editor)


def _present(column: str, schema_editor: BaseDatabaseSchemaEditor) -> models.Q | None:
    if schema_editor.connection.features.supports_partial_indexes:
        return models.Q(**{f"{column}__isnull": False})
    return None
