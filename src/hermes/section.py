"""Sections of settings: classes whose fields declare what a file may contain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, ClassVar, NoReturn, dataclass_transform


def setting(
    *,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    secret: bool = False,
    hint: str = "",
    is_id: bool = False,
    check: Callable[[str], bool] | None = None,
    expected: str = "",
) -> Any:
    """Declare a field whose numbers have a bound, whose value must never be shown, or with a hint for wrong values.

    An id is text that may be written as a number without quotes. `expected` describes the texts that `check` accepts.
    """
    rules: dict[str, Any] = {"above": above, "at_least": at_least, "at_most": at_most, "secret": secret, "hint": hint}
    rules |= {"is_id": is_id, "check": check, "expected": expected}
    return field(default=default, default_factory=default_factory, repr=not secret, metadata=rules)


def not_a_setting(*, default: Any) -> Any:
    """Declare a field that no file can set."""
    return field(default=default, metadata={"internal": True})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting, not_a_setting))
class Section:
    """A frozen dataclass with keyword arguments, whose methods are written here once.

    `dataclass` would generate and compile them for each section, which took a twelfth of the time of a short command.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, **values: Any) -> None:
        for declared in fields(self):
            if declared.name in values:
                value = values.pop(declared.name)
            elif declared.default is not MISSING:
                value = declared.default
            elif declared.default_factory is not MISSING:
                value = declared.default_factory()
            else:
                raise TypeError(f"{type(self).__name__} needs a value for {declared.name}")
            object.__setattr__(self, declared.name, value)
        if values:
            raise TypeError(f"{type(self).__name__} has no fields {', '.join(values)}")

    def __repr__(self) -> str:
        shown = [f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")


def setting_fields(section: type[Section]) -> Mapping[str, Field[Any]]:
    """Return the fields of a section that a file can set, by name."""
    return {each.name: each for each in fields(section) if not each.metadata.get("internal")}
