"""Sections of settings: classes that behave like frozen dataclasses."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from hermes.section import Section, not_a_setting, setting, setting_fields


class Door(Section):
    """A section with a secret and a field that no file sets."""

    color: str
    code: str | None = setting(default=None, secret=True)
    hinges: int = setting(default=2, at_least=1)
    tags: dict[str, int] = setting(default_factory=dict)
    source: str = not_a_setting(default="here")


class Gate(Door):
    """A section with the fields of another one, and one more."""

    width_m: float = 3.0


def test_missing_values_are_the_defaults() -> None:
    door = Door(color="red")
    assert (door.color, door.code, door.hinges, door.tags, door.source) == ("red", None, 2, {}, "here")


def test_two_sections_do_not_share_a_default_dict() -> None:
    assert Door(color="red").tags is not Door(color="red").tags


def test_sections_are_compared_by_value_and_class() -> None:
    assert Gate(color="red") == Gate(color="red", width_m=3.0)
    assert Gate(color="red") != Gate(color="blue")
    assert Gate(color="red") != Door(color="red")


def test_equal_sections_have_equal_hashes() -> None:
    class Knob(Section):
        size: int = 1

    assert hash(Knob()) == hash(Knob(size=1))


def test_section_cannot_be_changed() -> None:
    door = Door(color="red")
    with pytest.raises(FrozenInstanceError, match="color"):
        door.color = "blue"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="color"):
        del door.color


def test_replace_returns_a_changed_copy() -> None:
    gate = Gate(color="red", hinges=3)
    assert replace(gate, width_m=1.5) == Gate(color="red", hinges=3, width_m=1.5)
    assert gate.width_m == 3.0


def test_repr_hides_secrets() -> None:
    assert repr(Door(color="red", code="s3cret")) == "Door(color='red', hinges=2, tags={}, source='here')"


def test_unknown_value_is_refused() -> None:
    with pytest.raises(TypeError, match="Door has no fields handle, lock"):
        Door(color="red", handle=1, lock=2)  # type: ignore[call-arg]


def test_value_without_a_default_is_required() -> None:
    with pytest.raises(TypeError, match="Door needs a value for color"):
        Door()  # type: ignore[call-arg]


def test_a_file_can_set_inherited_fields_but_no_internal_ones() -> None:
    assert list(setting_fields(Gate)) == ["color", "code", "hinges", "tags", "width_m"]
