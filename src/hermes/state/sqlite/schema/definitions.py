"""What the schema of a file defines beyond ours: triggers, views and rules that another program has added.

The text of each definition decides. The other columns of `sqlite_schema` may contradict it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import apsw

from hermes.state.sqlite.connection import View, connect

RULES = frozenset(
    (
        *("CHECK", "GENERATED", "AS", "CONFLICT", "COLLATE", "UNIQUE", "WITHOUT", "STRICT"),
        *("CASCADE", "RESTRICT", "SET", "DEFERRABLE"),
    )
)
"""The words by which a table refuses or changes rows, or does more than a statement asks for."""
_COMPUTED = frozenset(("GENERATED", "AS"))

_QUOTED = r"""'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z)|\[[^\]]*(?:\]|\Z)"""
_NAME = rf"""({_QUOTED}|[^\s("'`\[]+)"""
# These are compiled on first use, because imports must be fast, and most of them are only for definitions not ours.
_BEGINNING = rf"CREATE (VIRTUAL TABLE|TABLE|(?:UNIQUE )?INDEX|TRIGGER|VIEW) (?:IF NOT EXISTS )?{_NAME}"
_LEDGER_LINE = "-- Ledger: "
_COMMENT_OR_QUOTED = rf"(?s)--[^\n]*|/\*.*?(?:\*/|\Z)|{_QUOTED}"
_WORD = r"\w+"
_PLAIN_INDEX = r"(?i)CREATE INDEX \w+\s+ON \w+\s*\(\s*\w+(?: (?:ASC|DESC))?(?:\s*,\s*\w+(?: (?:ASC|DESC))?)*\s*\)"
_REFERENCES = r"(?i)\bREFERENCES\s+(\w*)"
_EXPRESSION_AS_DEFAULT = r"(?i)\bDEFAULT\s*\("

_SHADOWS = {
    "messages_fts": ("data", "idx", "docsize", "config"),
    "messages_fts_trigram": ("data", "idx", "docsize", "config"),
}
_SHADOW_TEXTS = {
    "data": "CREATE TABLE '{name}'(id INTEGER PRIMARY KEY, block BLOB)",
    "idx": "CREATE TABLE '{name}'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID",
    "docsize": "CREATE TABLE '{name}'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER)",
    "config": "CREATE TABLE '{name}'(k PRIMARY KEY, v) WITHOUT ROWID",
}


_AFFINITIES = (
    (("INT",), "INTEGER"),
    (("CHAR", "CLOB", "TEXT"), "TEXT"),
    (("BLOB",), "BLOB"),
    (("REAL", "FLOA", "DOUB"), "REAL"),
)
"""The rules by which SQLite derives the affinity of a column from its type, in their order."""


class Column(NamedTuple):
    """A column of a table, as SQLite describes it."""

    name: str
    kind: str
    is_required: int
    default: str | None
    key: int
    """Its position in the primary key, from 1; 0 if it is not part of it."""


class Definition(NamedTuple):
    """One row of SQLite's schema."""

    kind: str
    name: str
    table: str
    sql: str | None


class ForeignSchema(NamedTuple):
    """The parts of a schema that are not ours and could change our rows, or prevent storing or reading them."""

    removable: tuple[Definition, ...] = ()
    """Triggers, views and indexes; opening the file for writing removes them."""
    rules: tuple[str, ...] = ()
    """Rules that cannot be removed from a table, as text for the user; such a file is not written to."""
    unsafe: tuple[str, ...] = ()
    """Why the file is unsafe even to read, as text for the user."""
    has_lost_index: bool = False
    """Whether a table of the search index has another definition."""

    @property
    def triggers(self) -> tuple[str, ...]:
        """The names of the removable triggers."""
        return tuple(each.name for each in self.removable if each.kind == "trigger")

    def describe(self) -> str:
        """The removable definitions, as text for the user."""
        return ", ".join(f"the {each.kind} {each.name}" for each in self.removable)


@cache
def schema_sql() -> str:
    """The schema of a new file: the sum of its migrations, in one file so that opening a store reads no other."""
    return Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")


@cache
def ledger() -> dict[str, str]:
    """The names and checksums of the migrations in the schema of a new file, in their order."""
    header = schema_sql().partition("\n\n")[0].splitlines()
    lines = (line.removeprefix(_LEDGER_LINE).split() for line in header if line.startswith(_LEDGER_LINE))
    return dict(lines)


@cache
def our_definitions() -> dict[str, str]:
    """The definitions of a new file by name, as SQLite keeps them."""
    found = {}
    for statement in _statements(schema_sql()):
        text = statement.replace("IF NOT EXISTS ", "", 1)
        found[_kind_and_name(text)[1]] = text
    for index, shadows in _SHADOWS.items():
        for shadow in shadows:
            found[f"{index}_{shadow}"] = _SHADOW_TEXTS[shadow].format(name=f"{index}_{shadow}")
    return found


@cache
def our_columns(table: str) -> dict[str, Column]:
    """The columns of a table of a new file by name."""
    connection = connect(":memory:", apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute(our_definitions()[table]).fetchall()
        return {each.name: each for each in describe_columns(View(connection), table)}
    finally:
        connection.close()


def read_definitions(view: View) -> list[Definition]:
    """Return all definitions of a file."""
    return [Definition(*row) for row in view.rows("SELECT type, name, tbl_name, sql FROM main.sqlite_schema")]


def describe_columns(view: View, table: str) -> list[Column]:
    """The columns of a table of a file."""
    rows = view.rows(
        "SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info(:table, 'main')", table=table
    )
    return [Column(*row) for row in rows]


def find_foreign(
    definitions: Iterable[Definition], describe: Callable[[str], list[Column]] = lambda _: []
) -> ForeignSchema:
    """Return the parts of a schema that are not ours and matter; `describe` returns the columns of a table."""
    ours = our_definitions()
    removable, rules, unsafe, has_lost_index = [], [], [], False
    for each in definitions:
        if each.sql is None or ours.get(each.name) == each.sql:
            continue
        if not all(isinstance(part, str) for part in each):
            unsafe.append(f"the definition of {each.name!r} in its schema is not text")
            continue
        kind, name = _kind_and_name(each.sql)
        if kind.removeprefix("unique ") != each.kind and not (kind == "virtual table" and each.kind == "table"):
            unsafe.append(f"its schema calls {each.name} a {each.kind}, but defines something else")
        elif name.lower() != each.name.lower():
            unsafe.append(f"its schema has two names for {each.name}")
        elif each.kind == "view" and name.lower() in ours:
            unsafe.append(f"{each.name} is not a table but a view")
        elif each.kind in ("trigger", "view"):
            removable.append(each)
        elif each.kind == "index":
            if _must_be_removed(each.name, each.table, each.sql):
                removable.append(each)
        elif each.name.startswith(tuple(_SHADOWS)):
            has_lost_index = has_lost_index or each.name in ours
        elif (own := ours.get(each.name.lower())) is not None:
            found = _rules(each.sql, own)
            rules += [f"{each.name} {rule}" for rule, _ in found]
            unsafe += [f"{each.name} {rule}" for rule, is_trick in found if is_trick]
            if not found:
                rules += [f"{each.name} {rule}" for rule in _rules_of_columns(each.name, describe(each.name))]
    return ForeignSchema(tuple(removable), tuple(rules), tuple(unsafe), has_lost_index)


def normalize(sql: str) -> str:
    """A definition without differences that have no meaning."""
    return " ".join(sql.replace("IF NOT EXISTS ", "").split()).replace("( ", "(").replace(" )", ")")


def _statements(script: str) -> Iterator[str]:
    """The CREATE statements of our schema, each of which starts and ends with a line."""
    pending: list[str] = []
    for line in script.splitlines():
        if not pending and not line.startswith("CREATE "):
            continue
        pending.append(line)
        if line == "END;" if pending[0].startswith("CREATE TRIGGER") else line.endswith(";"):
            yield "\n".join(pending).removesuffix(";")
            pending = []


def _must_be_removed(index: str, table: str, sql: str) -> bool:
    """Whether an index has the name of one of ours but another definition, or could refuse a row of ours."""
    own = our_definitions().get(index)
    if own is not None:
        return normalize(own) != normalize(sql)
    return table.lower() in our_definitions() and not re.fullmatch(_PLAIN_INDEX, _without_literals(sql))


def _rules(sql: str, own: str) -> list[tuple[str, bool]]:
    """What a table of ours does that it should not, and whether that also makes reading unsafe."""
    if sql.upper().startswith("CREATE VIRTUAL"):
        return [("is a virtual table", True)]
    text, own_text = _without_literals(sql), _without_literals(own)
    words = {word.upper() for word in re.findall(_WORD, text)} & RULES
    words -= {word.upper() for word in re.findall(_WORD, own_text)}
    found = [(f"is defined with {word}", word in _COMPUTED) for word in sorted(words)]
    if re.search(_EXPRESSION_AS_DEFAULT, text):
        found.append(("computes a default", False))
    references, allowed = re.findall(_REFERENCES, text), re.findall(_REFERENCES, own_text)
    if len(references) > len(allowed) or any(target.lower() != "sessions" for target in references):
        found.append(("refers to another table", False))
    return found


def _rules_of_columns(table: str, columns: list[Column]) -> Iterator[str]:
    """What the columns of a table change or require that our columns do not."""
    ours = our_columns(table.lower())
    for each in columns:
        own = ours.get(each.name.lower())
        if own is None:
            if each.is_required and each.default is None and not each.key:
                yield f"requires a value for {each.name}"
            continue
        if own.kind == "TEXT" and _affinity(each.kind) not in ("TEXT", "BLOB"):
            yield f"converts {each.name} into numbers"
        if each.is_required and each.default is None and own.default is None and not (own.is_required or own.key):
            yield f"requires a value for {each.name}"
        if own.kind == "TEXT" and own.default is None and each.default not in (None, "NULL"):
            yield f"has a default for {each.name}"
        if bool(each.key) != bool(own.key):
            yield f"has another key: {each.name}"


def _affinity(kind: str) -> str:
    """How SQLite converts the values of a column of a declared type."""
    kind = kind.upper()
    for parts, affinity in _AFFINITIES:
        if any(part in kind for part in parts):
            return affinity
    return "NUMERIC" if kind else "BLOB"


def _without_literals(sql: str) -> str:
    """A definition without comments, and with a digit instead of everything in quotes."""
    return re.sub(_COMMENT_OR_QUOTED, lambda found: " " if found[0][:2] in ("--", "/*") else " 0 ", sql)


def _kind_and_name(sql: str) -> tuple[str, str]:
    """The kind and the name that a statement defines; empty strings if it defines nothing."""
    found = re.match(_BEGINNING, sql)
    if found is None:
        return "", ""
    name = found[2]
    closing = {'"': '"', "'": "'", "`": "`", "[": "]"}.get(name[0])
    if closing is not None:
        name = name[1:-1].replace(closing * 2, closing) if closing != "]" else name[1:-1]
    return found[1].lower(), name
