"""Names of settings with dots, such as `model.base_url`: what they mean, and the path to their value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field
from difflib import get_close_matches
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from hermes.errors import InvalidValue
from hermes.section import Section, setting_fields


class SettingName(NamedTuple):
    """A setting, or a whole section: the keys that lead to it, and its type."""

    path: tuple[str, ...]
    hint: Any
    is_secret: bool

    @property
    def is_section(self) -> bool:
        """Whether this has settings below it."""
        return _is_section(self.hint) or get_origin(self.hint) is Mapping


def find_setting(root: type[Section], dotted_name: str) -> SettingName:
    """Return the setting with a name; raise `InvalidValue` if there is none.

    A name of the user, such as a model's, may have dots itself: `model.prices.gpt-4.1.input`.
    """
    parts = dotted_name.strip().split(".")
    found = _find(root, parts, (), None) if all(parts) else None
    if found is None:
        near = get_close_matches(dotted_name, list(iter_names(root)), n=1)
        raise InvalidValue(
            f"there is no setting {dotted_name[:80]}",
            hint=f"did you mean {near[0]}?" if near else "docs/guide/configuration.md lists all settings",
        )
    return found


def iter_names(section: type[Section], prefix: str = "") -> Sequence[str]:
    """Return the names of all settings of a section; a name of the user is written as `<name>`."""
    names: list[str] = []
    hints = get_type_hints(section)
    for name in setting_fields(section):
        hint = _without_none(hints[name])
        dotted = f"{prefix}{name}"
        if get_origin(hint) is Mapping:
            hint, dotted = get_args(hint)[1], f"{dotted}.<name>"
        names += iter_names(hint, f"{dotted}.") if _is_section(hint) else [dotted]
    return names


def _find(hint: Any, parts: list[str], path: tuple[str, ...], declared: Field[Any] | None) -> SettingName | None:
    hint = _without_none(hint)
    if not parts:
        return SettingName(path, hint, declared is not None and bool(declared.metadata.get("secret")))
    if _is_section(hint):
        name = parts[0]
        below = setting_fields(hint).get(name)
        return None if below is None else _find(get_type_hints(hint)[name], parts[1:], (*path, name), below)
    if get_origin(hint) is Mapping:
        inner = get_args(hint)[1]
        for count in range(len(parts), 0, -1) if not _is_section(inner) else range(1, len(parts) + 1):
            found = _find(inner, parts[count:], (*path, ".".join(parts[:count])), declared)
            if found is not None and (not found.is_section or count == len(parts)):
                return found
    return None


def _is_section(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Section)


def _without_none(hint: Any) -> Any:
    """Return X for `X | None`, and any other type unchanged."""
    arms = [arm for arm in get_args(hint) if arm is not NoneType]
    return arms[0] if NoneType in get_args(hint) and len(arms) == 1 else hint
