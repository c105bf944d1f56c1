"""Rules about source code that imports cannot show, read off the syntax tree.

Each rule takes a parsed module and yields `(line, what was found)`. Names like `update` and
`delete` belong to dicts, sets and hashes too, so a rule about rows first asks whether the receiver
is one: see RowWrites.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

Finding = tuple[int, str]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef

# Nothing but the ORM has methods of these names.
ROW_WRITES = frozenset({
    "save", "asave", "save_base",
    "bulk_create", "abulk_create", "bulk_update", "abulk_update",
    "get_or_create", "aget_or_create", "update_or_create", "aupdate_or_create",
    "save_model", "delete_model", "delete_queryset", "save_formset", "save_related",
})  # fmt: skip

# These are row writes only on a row, a queryset or a manager.
ROW_WRITES_ON_ROWS = frozenset({"create", "acreate", "update", "aupdate", "delete", "adelete"})

MANAGERS = frozenset({"objects", "_default_manager", "_base_manager"})

# Methods that make a queryset, whatever they are called on.
QUERIES = frozenset({
    "annotate", "defer", "exclude", "filter", "get_model", "get_queryset", "only", "order_by",
    "prefetch_related", "select_for_update", "select_related", "using",
})  # fmt: skip

# Methods that others have too: on a queryset they take rows from it.
ROW_GETTERS = frozenset({
    "afirst", "aget", "alast", "alias", "all", "create", "distinct", "earliest", "first", "get",
    "iterator", "last", "latest", "none", "reverse", "union",
})  # fmt: skip

ROW_NAMES = frozenset({"obj", "queryset", "qs", "row", "rows"})

TRANSACTIONS = frozenset({
    "django.db.transaction.atomic",
    "django.db.transaction.commit",
    "django.db.transaction.rollback",
    "django.db.transaction.savepoint",
    "django.db.transaction.savepoint_commit",
    "django.db.transaction.savepoint_rollback",
    "django.db.transaction.set_autocommit",
})  # fmt: skip

CONNECTIONS = frozenset({
    "django.db.connection",
    "django.db.connections",
    "django.db.transaction.get_connection",
    "django.db.utils.ConnectionHandler",
})  # fmt: skip

WALL_CLOCKS = frozenset({
    "time.time", "time.time_ns", "time.localtime", "time.gmtime",
    "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today",
    "datetime.date.today",
    "django.utils.timezone.now", "django.utils.timezone.localtime",
    "django.utils.timezone.localdate",
})  # fmt: skip

STOPWATCHES = frozenset({
    "time.monotonic", "time.monotonic_ns", "time.perf_counter", "time.perf_counter_ns",
})  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Source:
    """One parsed file; `package` is the dotted name that its relative imports start from."""

    path: Path
    text: str
    package: str

    @cached_property
    def tree(self) -> ast.Module:
        """The file's syntax tree."""
        return ast.parse(self.text, filename=str(self.path))

    @property
    def docstring(self) -> str | None:
        """What the module says of itself."""
        return ast.get_docstring(self.tree)

    @cached_property
    def imported(self) -> dict[str, str]:
        """Local name -> the dotted name it stands for, for every import in the file."""
        names: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    names[bound] = alias.name if alias.asname else bound
            elif isinstance(node, ast.ImportFrom):
                origin = self._origin(node)
                for alias in node.names:
                    names[alias.asname or alias.name] = f"{origin}.{alias.name}"
        return names

    def dotted(self, node: ast.expr) -> str:
        """The full dotted name of `a.b.c`, following imports; empty for anything else."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, "")
        if isinstance(node, ast.Attribute):
            owner = self.dotted(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        return ""

    def _origin(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        kept = self.package.split(".")
        kept = kept[: len(kept) - node.level + 1]
        return ".".join([*kept, node.module] if node.module else kept)


def uses_of(source: Source, forbidden: frozenset[str]) -> Iterator[Finding]:
    """Every use or import of one of the dotted names, however it was imported."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name | ast.Attribute):
            name = source.dotted(node)
            if name in forbidden:
                yield node.lineno, name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = source.imported[alias.asname or alias.name]
                if name in forbidden:
                    yield node.lineno, f"import of {name}"


def database_control(source: Source) -> Iterator[Finding]:
    """Transactions, row locks and cursors."""
    yield from uses_of(source, TRANSACTIONS)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr == "select_for_update":
            yield node.lineno, "select_for_update"
    for method in _called_methods(ast.walk(source.tree)):
        # `page.cursor` is a value and `core.cursor` a module; only a call opens one.
        if method.attr in {"cursor", "chunked_cursor"}:
            yield method.lineno, f"{ast.unparse(method)}()"


def vendor_reads(source: Source) -> Iterator[Finding]:
    """Every `something.vendor`: code that asks which database it is on."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr == "vendor":
            yield node.lineno, ast.unparse(node)


def row_writes(source: Source) -> Iterator[Finding]:
    """Rows saved, created, updated or deleted, by method call or by instance."""
    yield from RowWrites(source).findings()


class RowWrites:
    """Finds row writes, function by function, knowing which names stand for rows there.

    An expression is about rows when it goes through a manager (`.objects`, `.children_set`) or a
    query method (`.filter(...)`), when it starts from a model (imported from a `models` module, or
    got by `get_model`), or from a name that says so: a parameter called `queryset` or annotated as
    one, `self` inside a model, and whatever was assigned or looped from such an expression. A field
    of a row is not a row: `job.metadata.update(...)` changes a dict.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.models = {
            local
            for local, dotted in source.imported.items()
            if "models" in dotted.split(".") and not dotted.startswith("django.")
        }
        self.always = self.models | ({"self"} if "models" in source.package.split(".") else set())

    def findings(self) -> Iterator[Finding]:
        """Each write once, in the order of the file."""
        module_rows = self._row_names(self.source.tree, self.always)
        found = set(self._writes_in(self.source.tree, module_rows))
        for node in ast.walk(self.source.tree):
            if isinstance(node, FUNCTIONS):
                rows = module_rows.union(self._row_parameters(node))
                found.update(self._writes_in(node, self._row_names(node, rows)))
        yield from sorted(found)

    def _writes_in(self, scope: ast.Module | Function, rows: set[str]) -> Iterator[Finding]:
        for method in _called_methods(_own_nodes(scope)):
            on_rows = method.attr in ROW_WRITES_ON_ROWS and self._is_row(method.value, rows)
            if method.attr in ROW_WRITES or on_rows:
                yield method.lineno, f"{ast.unparse(method)}()"

    def _row_names(self, scope: ast.Module | Function, known: set[str]) -> set[str]:
        rows = set(known)
        bindings = list(_bindings(scope))
        while True:  # a name may be used above the line that shows what it is: repeat until stable
            fresh = {name for name, value in bindings if self._is_row(value, rows)} - rows
            if not fresh:
                return rows
            rows |= fresh

    def _row_parameters(self, function: Function) -> Iterator[str]:
        arguments = function.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.annotation is None:
                named_so = argument.arg in ROW_NAMES
            else:
                named_so = self._annotates_rows(argument.annotation)
            if named_so:
                yield argument.arg

    def _annotates_rows(self, annotation: ast.expr) -> bool:
        words = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
        words |= {node.attr for node in ast.walk(annotation) if isinstance(node, ast.Attribute)}
        return bool(words & (self.models | {"Model", "QuerySet", "Manager"}))

    def _is_row(self, node: ast.expr, rows: set[str]) -> bool:
        if isinstance(node, ast.Name):
            return node.id in rows
        if isinstance(node, ast.Attribute):
            through_module = isinstance(node.value, ast.Name) and node.value.id in self.models
            return node.attr in MANAGERS or node.attr.endswith("_set") or through_module
        if isinstance(node, ast.Call):
            return self._makes_rows(node.func, rows)
        if isinstance(node, ast.Subscript | ast.Await):
            return self._is_row(node.value, rows)
        return False

    def _makes_rows(self, function: ast.expr, rows: set[str]) -> bool:
        if not isinstance(function, ast.Attribute):
            return self._is_row(function, rows)
        if function.attr in QUERIES:
            return True
        return function.attr in ROW_GETTERS and self._is_row(function.value, rows)


def _called_methods(nodes: Iterable[ast.AST]) -> Iterator[ast.Attribute]:
    """The `receiver.name` of every `receiver.name(...)`."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module or function without those of the functions inside it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, FUNCTIONS):
            yield child
            yield from _own_nodes(child)


def _bindings(scope: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in _own_nodes(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _named(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value:
            yield from _named(node.target, node.value)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            yield from _named(node.target, node.iter)


def _named(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, value


def long_functions(source: Source, longest: int) -> Iterator[Finding]:
    """Functions with more than `longest` lines, not counting their docstring."""
    for node in ast.walk(source.tree):
        if isinstance(node, FUNCTIONS):
            lines = _line_count(node)
            if lines > longest:
                yield node.lineno, f"{node.name}: {lines} lines"


def _line_count(function: Function) -> int:
    first = function.body[0]
    documented = ast.get_docstring(function, clean=False) is not None
    docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring
