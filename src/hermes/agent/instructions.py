"""Instructions for the agent that the user keeps in files: `AGENTS.md` of a project, and `SOUL.md` in the Hermes home.

They become part of the system prompt when a session starts, and are stored with it. A file that another user could have
written is never used, because its text decides what the agent does.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from unicodedata import category

from hermes.agent.safety.protected_names import has_secret_name
from hermes.agent.safety.visible_text import make_path_visible
from hermes.errors import ConfigError
from hermes.phrases import format_size
from hermes.trust import refuse_settings_of_others

AGENTS, SOUL = "AGENTS.md", "SOUL.md"
MAX_BYTES = 32 * 1024
"""The limit for all files of a project together; the nearest file comes first."""
MAX_SOUL_BYTES = 16 * 1024
MAX_DIRECTORIES = 20
"""How many directories are looked at, beginning with the working directory."""

INTRODUCTION = (
    "The user keeps these instructions for agents in the project. Follow them here, unless the user says otherwise;"
    " where two of them disagree, the later one counts."
)
_OMITTED = "\n[... the rest of this file is omitted: it is too long ...]"
_BEGIN = '<instructions file="{path}">'
_END = "</instructions>"
_MARK = re.compile(r"^(\s*)<(?=/?instructions\b)", re.MULTILINE | re.IGNORECASE)
_FILE = re.compile(r'^<instructions file="([^"\n]{1,4096})">$', re.MULTILINE)
_DROPPED = frozenset(("Cc", "Cf", "Co", "Cs"))
"""Categories of characters that a reader of the file does not see."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """The instructions of a project."""

    text: str = ""
    """The section for the system prompt; empty if there are none."""
    files: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """Sentences for the user about files that are not used, or not completely."""


def read_instructions(directory: Path, user_home: Path) -> Instructions:
    """Return the instructions for work in a directory: those of the project first, those of the directory last."""
    found: list[tuple[str, str]] = []
    remarks: list[str] = []
    places = directories_of(directory, user_home)
    left = MAX_BYTES
    for place in reversed(places):  # the nearest file must not be left out
        file = place / AGENTS
        name = make_path_visible(file)
        try:
            text, is_whole = _read(file, places[0], left)
        except FileNotFoundError:
            continue
        except ConfigError as error:
            remarks.append(error.message)
            continue
        except OSError as error:
            remarks.append(f"{name} is not used: {error.strerror}")
            continue
        if not is_whole:
            remarks.append(f"{name} is not used completely: instructions may have {format_size(MAX_BYTES)} together")
        left -= len(text.encode())
        if text.strip():
            found.insert(0, (name, _block(name, text, is_whole)))
    section = "\n\n".join([INTRODUCTION, *(block for _, block in found)]) if found else ""
    return Instructions(section, tuple(name for name, _ in found), tuple(remarks))


def read_soul(home: Path) -> Instructions:
    """Return who the agent is, as the user describes it in `SOUL.md` in the Hermes home."""
    file = home / SOUL
    name = make_path_visible(file)
    try:
        text, is_whole = _read(file, home, MAX_SOUL_BYTES)
    except FileNotFoundError:
        return Instructions()
    except ConfigError as error:
        return Instructions(remarks=(error.message,))
    except OSError as error:
        return Instructions(remarks=(f"{name} is not used: {error.strerror}",))
    remark = f"{name} is not used completely: it may have {format_size(MAX_SOUL_BYTES)}"
    remarks = () if is_whole else (remark,)
    # The prompt names no directory: in a chat it would tell other people where Hermes stores its files.
    return Instructions(_block(SOUL, text, is_whole), (SOUL,), remarks) if text.strip() else Instructions()


def files_in_prompt(prompt: str) -> list[str]:
    """Return the files whose instructions a stored system prompt contains."""
    return _FILE.findall(prompt)


def directories_of(directory: Path, user_home: Path) -> list[Path]:
    """Return the directories whose instructions apply in a directory, the outermost first.

    In a repository they begin at its root. Elsewhere they begin below the user's home directory, or are only this one.
    """
    upwards = [directory, *directory.parents][:MAX_DIRECTORIES]
    for count, place in enumerate(upwards, 1):
        if place == user_home and place != directory:
            return upwards[: count - 1][::-1]
        if (place / ".git").exists():
            return upwards[:count][::-1]
    return [directory]


def _read(file: Path, root: Path, limit: int) -> tuple[str, bool]:
    """Return the text of a file, at most so many bytes, and whether that is all of it.

    Raise `ConfigError` if another user could have written it, and OSError if it is no plain file below the root: a link
    in a downloaded project could name any file of this machine.
    """
    target = Path(os.path.realpath(file))
    if not target.is_relative_to(os.path.realpath(root)):
        if not file.is_symlink():
            raise FileNotFoundError
        raise OSError(errno.EPERM, "it is a link to a file outside the project")
    if has_secret_name(f"/{target.relative_to(os.path.realpath(root))}".casefold()):
        raise OSError(errno.EPERM, "it is a link to a file that may contain secrets")
    refuse_settings_of_others(file)
    opened = os.open(target, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(opened, "rb") as stream:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file")
        if status.st_nlink > 1 and file.name == AGENTS:
            raise OSError(errno.EPERM, "it is a hard link, and its other names may be outside the project")
        data = stream.read(limit + 1)
    return _clean(data[:limit].decode("utf-8-sig", "replace")), len(data) <= limit


def _block(name: str, text: str, is_whole: bool) -> str:
    """Return a text between marks that name its file."""
    begin = _BEGIN.format(path=name.replace('"', "?"))
    return f"{begin}\n{text.strip()}{'' if is_whole else _OMITTED}\n{_END}"


def _clean(text: str) -> str:
    """Return a text without invisible characters, and without lines that look like the marks around instructions."""
    visible = "".join(each for each in text.replace("\r\n", "\n") if each in "\n\t" or category(each) not in _DROPPED)
    return _MARK.sub(r"\1&lt;", visible)
