"""Write the schema of a SQLite store, as the sum of its migrations: `make schema`.

Opening a SQLite store reads this one file instead of all migrations. It also names their checksums.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from hermes.state.sql.migration_files import Migration, read_migrations

SQLITE = Path(__file__).resolve().parent.parent / "src" / "hermes" / "state" / "sqlite"
MIGRATIONS = SQLITE / "migrations"
SCHEMA = SQLITE / "schema" / "schema.sql"

HEADER = """\
-- The whole schema of a SQLite store: the sum of ../migrations/*.sql. `make schema` writes this file; do not edit it.
--
"""
KINDS = ("TABLE", "INDEX", "VIRTUAL TABLE", "TRIGGER")
"""The order of the definitions in the file."""

_CREATE = re.compile(r"CREATE (?:UNIQUE )?(VIRTUAL TABLE|TABLE|INDEX|TRIGGER) IF NOT EXISTS (\w+)")
_DROP = re.compile(r"DROP (?:TABLE|INDEX|TRIGGER) IF EXISTS (\w+);")
_ADD_COLUMN = re.compile(r"ALTER TABLE (\w+) ADD COLUMN\s+([^\n;]+);([^\n]*)")
_STATEMENT_ENDS = re.compile(r";(?:\s*--.*)?$")
_NO_COLUMN = re.compile(r"\s*(?:--|(?:CONSTRAINT|FOREIGN|PRIMARY|UNIQUE|CHECK)\b)")
_CODE_AND_COMMENT = re.compile(r"(.*?)(\s*--.*)?")


def main() -> None:
    SCHEMA.write_text(whole_schema(read_migrations(MIGRATIONS).values()), encoding="utf-8")
    print(f"Wrote {SCHEMA}.", file=sys.stderr)


def whole_schema(migrations: Iterable[Migration]) -> str:
    """The ledger and the definitions of a store that has all migrations."""
    ledger = ""
    # The kind and the text of each name. The text of a dropped one is empty, so that a new one takes its position.
    definitions: dict[str, tuple[str, str]] = {}
    for migration in migrations:
        ledger += f"-- Ledger: {migration.name} {migration.checksum}\n"
        for leading, statement in _statements(migration.script):
            if (created := _CREATE.match(statement)) is not None:
                if definitions.get(created[2], ("", ""))[1]:
                    raise ValueError(f"{migration.name}: {created[2]} exists already; drop it first")
                definitions[created[2]] = (created[1], leading + statement)
            elif (dropped := _DROP.fullmatch(statement)) is not None:
                definitions[dropped[1]] = (definitions[dropped[1]][0], "")
            elif (added := _ADD_COLUMN.fullmatch(statement)) is not None:
                kind, text = definitions[added[1]]
                definitions[added[1]] = (kind, _with_column(text, added[2], added[3]))
            else:
                raise ValueError(
                    f"{migration.name}: only CREATE ... IF NOT EXISTS, DROP ... IF EXISTS, ALTER TABLE ... ADD COLUMN"
                    f" are allowed; schema/upgrade.py changes rows. Not understood: {statement}"
                )
    return HEADER + ledger + _join(each for each in definitions.values() if each[1])


def _statements(script: str) -> Iterator[tuple[str, str]]:
    """The statements of a script, each with the comment lines and the empty line before it."""
    leading: list[str] = []
    pending: list[str] = []
    for line in script.splitlines():
        if not pending and (not line or line.startswith("--")):
            leading = [*leading, line] if line else [""]
            continue
        pending.append(line)
        if line == "END;" if pending[0].startswith("CREATE TRIGGER") else _STATEMENT_ENDS.search(line):
            yield "".join(f"{each}\n" for each in leading), "\n".join(pending)
            leading, pending = [], []
    if pending:
        raise ValueError(f"a statement does not end: {pending[0]}")


def _with_column(table: str, column: str, comment: str) -> str:
    """The definition of a table with one more column behind its last one."""
    lines = table.split("\n")
    end = max(number for number, line in enumerate(lines) if line.startswith(")"))
    last = max(number for number, line in enumerate(lines[:end]) if not _NO_COLUMN.match(line))
    found = _CODE_AND_COMMENT.fullmatch(lines[last])
    assert found is not None
    lines[last] = f"{found[1].removesuffix(',')},{found[2] or ''}"
    lines.insert(last + 1, f"    {column.strip()}{',' * (last + 1 < end)}{comment}")
    return "\n".join(lines)


def _join(definitions: Iterable[tuple[str, str]]) -> str:
    """The text of the definitions by kind, with an empty line before each table and each new kind."""
    text, before = "", ""
    for kind, definition in sorted(definitions, key=lambda each: KINDS.index(each[0])):
        if (kind == "TABLE" or kind != before) and not definition.startswith("\n"):
            text += "\n"
        text += f"{definition}\n"
        before = kind
    return text


if __name__ == "__main__":
    main()
