"""Skills that belong to a chat or a topic: their text becomes a part of the system prompt of a session that starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes.agent.skills.files import read_skill_file
from hermes.agent.skills.skill import SKILL_FILE, Skill
from hermes.agent.skills.texts import MAX_BOUND, bound_skill_section
from hermes.errors import HermesError, NotFound
from hermes.log import warn

if TYPE_CHECKING:
    from hermes.agent.conversation import Conversation


def add_bound_skills(context: str, names: Sequence[str], conversation: Conversation) -> str:
    """Return the section about a chat, followed by its skills; one that cannot be used here is left out and logged.

    The session uses these skills from now on, so its commands get their variables.
    """
    if not names:
        return context
    sections = [context] if context else []
    skills = conversation.session.tools.skills
    listed = skills.library.all()
    for name in list(dict.fromkeys(names))[:MAX_BOUND]:
        try:
            found = skills.library.get(name, listed)
            reason = skills.hidden_reason(found)
            if reason is not None or not isinstance(found, Skill):
                raise NotFound(f"it is hidden: {reason}")
            text = read_skill_file(found.directory, SKILL_FILE)
        except (HermesError, OSError) as error:
            warn(__name__, "the skill %r of a chat is not used: %s", name[:80], error)
            continue
        skills.begin(found)
        sections.append(bound_skill_section(found, text, skills.missing(found)))
    return "\n\n".join(sections)
