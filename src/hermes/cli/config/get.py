"""`hermes config get` and `hermes config path`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, get_type_hints

import click

from hermes.cli.config.setting_names import find_setting
from hermes.cli.display.terminal import printable, write_json, write_stderr, write_stdout
from hermes.cli.options import AS_JSON
from hermes.cli.store import read_config
from hermes.config import CONFIG_FILENAME, Config
from hermes.errors import NotFound
from hermes.home import get_hermes_home
from hermes.section import Section, setting_fields

SCHEMA = "hermes.settings/1"
HIDDEN = "(set)"
"""What is shown instead of a secret."""


class Value(NamedTuple):
    """A setting and its value."""

    name: str
    value: Any
    is_default: bool


@click.command()
@click.argument("name", required=False)
@AS_JSON
def get(name: str | None, as_json: bool) -> None:
    """Print the setting NAME, or all settings of a section.

    Without NAME, only settings that differ from their defaults are printed. Secrets are never shown.
    """
    config = read_config(as_json=as_json)
    found = list(iter_values(config, Config()))
    dotted = ""
    if name is None:
        found = [each for each in found if not each.is_default]
    else:
        wanted = find_setting(Config, name)
        dotted = ".".join(wanted.path)
        found = [each for each in found if each.name == dotted or each.name.startswith(f"{dotted}.")]
        if not found:
            raise NotFound(f"{dotted} is not set", hint="it has no default")
    if as_json:
        items = [each._asdict() for each in found]
        write_json({"schema": SCHEMA, "items": items, "total": len(items), "next": None})
    elif not found:
        write_stderr("All settings have their defaults.")
    elif len(found) == 1 and found[0].name == dotted:
        write_stdout(printable(format_value(found[0].value)))
    else:
        write_stdout("\n".join(f"{each.name}: {printable(format_value(each.value))}" for each in found))


@click.command()
def path() -> None:
    """Print the path of config.yaml, whether or not it exists."""
    write_stdout(str(get_hermes_home() / CONFIG_FILENAME))


def format_value(value: object) -> str:
    """Return a value on one line: text as it is, everything else as JSON."""
    if isinstance(value, str):
        return value
    return f"{value:g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def iter_values(section: Section, defaults: Section | None, prefix: str = "") -> Iterator[Value]:
    """Yield all settings of a section; `defaults` is the same section without any file."""
    hints = get_type_hints(type(section))
    for name, declared in setting_fields(type(section)).items():
        value = getattr(section, name)
        default = None if defaults is None else getattr(defaults, name)
        yield from _values(
            f"{prefix}{name}", hints[name], value, default, is_secret=bool(declared.metadata.get("secret"))
        )


def _values(name: str, hint: Any, value: Any, default: Any, *, is_secret: bool) -> Iterator[Value]:
    if isinstance(value, Section):
        yield from iter_values(value, default if isinstance(default, Section) else None, f"{name}.")
    elif isinstance(value, Mapping):
        for key, each in value.items():
            known = default.get(key) if isinstance(default, Mapping) else None
            yield from _values(f"{name}.{key}", hint, each, known, is_secret=is_secret)
    else:
        plain = list(value) if isinstance(value, tuple) else value
        yield Value(name, HIDDEN if is_secret and value else plain, value == default)
