"""The skills of one session: which it sees, which it uses, and the variables that its commands get because of that."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from hermes.agent.skills.library import Found, SkillLibrary
from hermes.agent.skills.skill import BrokenSkill, RequiredVariable, Skill, hidden_reason
from hermes.agent.skills.variables import missing_of, values_of

MAX_SESSIONS = 10_000
"""How many sessions are remembered; one that is forgotten has to read its skill again."""


@dataclass(frozen=True, slots=True)
class SecretRequest:
    """A question for a secret value."""

    name: str
    question: str
    help: str = ""


AskSecret = Callable[[SecretRequest], str | None]
"""Asks the user at the terminal, without showing what is typed; None or an empty text if there is no value."""


class SkillUse:
    """Which skills the sessions of a process use; threads may share it."""

    def __init__(self) -> None:
        self._used: OrderedDict[str, dict[str, tuple[str, ...]]] = OrderedDict()
        self._lock = Lock()

    def add(self, session_id: str, skill: Skill) -> None:
        """Note that a session uses a skill."""
        with self._lock:
            self._used.setdefault(session_id, {})[skill.name] = tuple(each.name for each in skill.variables)
            self._used.move_to_end(session_id)
            while len(self._used) > MAX_SESSIONS:
                self._used.popitem(last=False)

    def names(self, session_id: str) -> list[str]:
        """Return the variables of the skills that a session uses."""
        with self._lock:
            return sorted({name for names in self._used.get(session_id, {}).values() for name in names})

    def move(self, session_id: str, successor_id: str) -> None:
        """Move the skills of a session to the session that continues it."""
        with self._lock:
            used = self._used.pop(session_id, {})
            if used:
                self._used.setdefault(successor_id, {}).update(used)

    def forget(self, session_id: str) -> None:
        """Drop the skills of a session that has ended."""
        with self._lock:
            self._used.pop(session_id, None)


@dataclass(frozen=True, slots=True)
class SessionSkills:
    """The skills as one session sees them."""

    library: SkillLibrary
    use: SkillUse
    session_id: str
    home: Path
    toolsets: Collection[str]
    tools: Collection[str]

    def visible(self) -> list[Skill]:
        """Return the skills whose conditions hold here, by name."""
        return [each for each in self.library.usable() if self.hidden_reason(each) is None]

    def hidden_reason(self, found: Found) -> str | None:
        """Return why this session does not see a skill, or None if it does."""
        if isinstance(found, BrokenSkill):
            return found.problem
        return hidden_reason(found, self.toolsets, self.tools)

    def begin(self, skill: Skill) -> None:
        """Note that the session uses a skill from now on."""
        self.use.add(self.session_id, skill)

    def missing(self, skill: Skill, environ: Mapping[str, str] | None = None) -> list[RequiredVariable]:
        """Return the variables of a skill that have no value."""
        return missing_of(skill.variables, self.home, os.environ if environ is None else environ)

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables for the commands of this session: those of the skills in use that have a value."""
        names = self.use.names(self.session_id)
        return values_of(names, self.home, environ) if names else {}
