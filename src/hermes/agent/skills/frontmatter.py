"""Parses the frontmatter of a `SKILL.md`: the YAML between two lines `---` at its beginning.

The file is not trusted: its size and its nesting are limited, and YAML's tags, anchors and aliases are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.agent.safety.visible_text import make_visible
from hermes.agent.skills.skill import RequiredVariable, Skill, is_skill_name, is_variable_name, variable_refusal
from hermes.errors import InvalidValue

MAX_FRONTMATTER = 16_000
MAX_DESCRIPTION = 1_024

_FRONTMATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(?P<yaml>.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
_MAX_EVENTS = 2_000
_MAX_NESTING = 8
_MAX_ITEMS = 50
_MAX_TEXT = 300
_LISTS = ("requires_toolsets", "requires_tools", "fallback_for_toolsets", "fallback_for_tools")


def split_frontmatter(text: str) -> tuple[str, str]:
    """Return the YAML and the rest of a `SKILL.md`; raise `InvalidValue` if it does not begin with frontmatter."""
    # Only the beginning is searched: a long text without an end of its frontmatter takes no time.
    found = _FRONTMATTER.match(text[: MAX_FRONTMATTER + 100])
    if found is None:
        raise InvalidValue(
            f"it does not begin with frontmatter (--- and another --- within {MAX_FRONTMATTER} characters)"
        )
    return found["yaml"], text[found.end() :]


def parse_skill(text: str, directory: Path, category: str = "") -> Skill:
    """Return the skill that a `SKILL.md` describes; raise `InvalidValue` with the first problem."""
    data = _load(split_frontmatter(text)[0])
    name = data.get("name", directory.name)
    if not isinstance(name, str) or not is_skill_name(name):
        raise InvalidValue("its name must consist of small letters, digits, - and _, at most 64 of them")
    conditions = {key: _names(key, _field(data, key)) for key in _LISTS}
    return Skill(
        name=name,
        description=_description(data.get("description")),
        directory=directory,
        category=category,
        variables=_variables(_field(data, "required_environment_variables")),
        **conditions,
    )


def _load(text: str) -> Mapping[str, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _refuse_odd_yaml(text, loader)
        data = yaml.load(text, Loader=loader)  # noqa: S506 - it is the safe loader
    except InvalidValue:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 2}" if mark else ""
        raise InvalidValue(f"its frontmatter is not valid YAML{line}") from None
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError):
        raise InvalidValue("its frontmatter is not valid YAML") from None
    if not isinstance(data, dict):
        raise InvalidValue("its frontmatter has no fields such as `name: ...`")
    return data


def _refuse_odd_yaml(text: str, loader: Any) -> None:
    """Raise `InvalidValue` for YAML that is deep or large, or that has tags, anchors or aliases."""
    import yaml

    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=loader)):
        if count > _MAX_EVENTS:
            raise InvalidValue("its frontmatter has too many entries")
        if getattr(event, "anchor", None) is not None:
            raise InvalidValue("its frontmatter uses an anchor or an alias of YAML (& or *): put the text in quotes")
        if getattr(event, "tag", None) is not None:
            raise InvalidValue("its frontmatter uses a tag of YAML (!): put the text in quotes")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_NESTING:
            raise InvalidValue("its frontmatter is nested too deeply")


def _field(data: Mapping[str, Any], key: str) -> Any:
    """Return a field of the frontmatter, or else the one in `metadata.hermes`."""
    if key in data:
        return data[key]
    inner: Any = data.get("metadata")
    inner = inner.get("hermes") if isinstance(inner, dict) else None
    return inner.get(key) if isinstance(inner, dict) else None


def _description(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidValue("it has no description")
    if len(value) > MAX_DESCRIPTION:
        raise InvalidValue(f"its description has {len(value)} characters; the limit is {MAX_DESCRIPTION}")
    return one_line(value, MAX_DESCRIPTION)


def _names(key: str, value: Any) -> tuple[str, ...]:
    """Return a list of names; a text where a list belongs is one name."""
    if value is None:
        return ()
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(each, str) for each in items) or len(items) > _MAX_ITEMS:
        raise InvalidValue(f"its {key} must be a name or a list of names")
    names = [one_line(each, _MAX_TEXT) for each in items]
    return tuple(dict.fromkeys(each for each in names if each))


def _variables(value: Any) -> tuple[RequiredVariable, ...]:
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    if len(items) > _MAX_ITEMS:
        raise InvalidValue("its required_environment_variables are too many")
    found: dict[str, RequiredVariable] = {}
    for each in items:
        variable = _variable(each)
        found.setdefault(variable.name, variable)
    return tuple(found.values())


def _variable(value: Any) -> RequiredVariable:
    data = {"name": value} if isinstance(value, str) else value
    if not isinstance(data, dict):
        raise InvalidValue("its required_environment_variables must be names, or objects with a name")
    name = data.get("name", data.get("env_var"))
    if not isinstance(name, str) or not is_variable_name(name):
        raise InvalidValue("its required_environment_variables have a name that no variable can have")
    refusal = variable_refusal(name)
    if refusal is not None:
        raise InvalidValue(f"its required_environment_variables are not allowed: {refusal}")
    helps = (data.get(key) for key in ("help", "provider_url", "url"))
    return RequiredVariable(
        name,
        prompt=_text(data.get("prompt")),
        help=next(filter(None, map(_text, helps)), ""),
        is_optional=data.get("optional") is True,
    )


def _text(value: Any) -> str:
    return one_line(value, _MAX_TEXT) if isinstance(value, str) else ""


def one_line(text: str, limit: int) -> str:
    """Return a text on one line, limited, and without anything that hides or acts on a terminal."""
    shown = make_visible(" ".join(text.split()))
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"
