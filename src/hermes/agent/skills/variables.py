"""The environment variables of skills: which are set, and how a value that the user types is stored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from hermes.agent.memory.lock_file import hold_lock
from hermes.agent.skills.skill import RequiredVariable, is_variable_name, variable_refusal
from hermes.config import CONFIG_FILENAME, ENV_FILENAME, load_variables
from hermes.errors import HermesError, InvalidValue
from hermes.home import ensure_private_dir, read_plain_file, write_private_atomic
from hermes.trust import refuse_settings_of_others

MAX_VALUE = 8_192

_OWN_HELP = "config.yaml uses this variable itself, so no skill gets it; the skill needs another name"

_REFERENCE = re.compile(rb"\$\{([A-Za-z_][A-Za-z0-9_]*)")


def values_of(names: Iterable[str], home: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values of variables that skills may have, from the environment or `.env`; unset ones are left out.

    A variable that `config.yaml` refers to is a secret of the agent itself, and no skill gets it.
    """
    try:
        variables = load_variables(home, environ=environ)
    except HermesError:
        variables = dict(environ)  # the file cannot be used, which other places report
    own = _used_by_config(home)
    allowed = [each for each in names if each not in own and variable_refusal(each) is None]
    return {name: variables[name] for name in allowed if variables.get(name)}


def missing_of(variables: Iterable[RequiredVariable], home: Path, environ: Mapping[str, str]) -> list[RequiredVariable]:
    """Return the variables that have no value; the help of one that no skill can get says so."""
    listed = list(variables)
    found = values_of((each.name for each in listed), home, environ)
    own = _used_by_config(home)
    missing = (each for each in listed if each.name not in found)
    return [replace(each, help=_OWN_HELP) if each.name in own else each for each in missing]


def may_be_asked(home: Path, name: str) -> bool:
    """Whether a user may be asked for a variable of a skill: a value must not replace a secret of Hermes itself."""
    return variable_refusal(name) is None and name not in _used_by_config(home)


def store_variable(home: Path, name: str, value: str) -> None:
    """Store a variable in `.env`, which only the user can read; other lines of the file stay as they are."""
    if not may_be_asked(home, name):
        raise InvalidValue(f"{name[:80]} cannot be stored")
    write_variable(home, name, value)


def write_variable(home: Path, name: str, value: str) -> None:
    """Write a line of `.env`, for the operator: it may be a key of the agent itself."""
    if not is_variable_name(name):
        raise InvalidValue(f"{name[:80]} cannot be stored")
    if not value or len(value) > MAX_VALUE or any(each in value for each in "\0\n\r") or not _is_text(value):
        raise InvalidValue(f"the value of {name} must be one line of text, at most {MAX_VALUE} characters")
    file = home / ENV_FILENAME
    ensure_private_dir(home)
    refuse_settings_of_others(file)
    with hold_lock(home / f"{ENV_FILENAME}.lock"):
        try:
            before = read_plain_file(file)
        except FileNotFoundError:
            before = b""
        assigned = re.compile(rb"\s*(?:export\s+)?" + name.encode() + rb"\s*=")
        kept = [line for line in before.splitlines(keepends=True) if not assigned.match(line)]
        if kept and not kept[-1].endswith((b"\n", b"\r")):
            kept[-1] += b"\n"
        write_private_atomic(file, b"".join(kept) + f"{name}={_quote(value)}\n".encode())


def _quote(value: str) -> str:
    if "'" not in value:
        return f"'{value}'"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    return f'"{escaped}"'


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _used_by_config(home: Path) -> frozenset[str]:
    """Return the names of the variables that `config.yaml` refers to."""
    try:
        return frozenset(each.decode() for each in _REFERENCE.findall(read_plain_file(home / CONFIG_FILENAME)))
    except OSError:
        return frozenset()
