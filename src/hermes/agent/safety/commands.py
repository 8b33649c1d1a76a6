"""Shell commands judged before they run: which only read, which are dangerous, and what may be allowed once for all.

Nothing here runs anything. A command counts as read-only when it is one well-known program with plain arguments, all of
which are understood; everything else is asked about.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from hermes.agent.safety.visible import has_disguise

Risk = Literal["normal", "high"]

# No character with which a shell would do more than to start a program.
_PLAIN = re.compile(r"""[A-Za-z0-9_@%+=:,./^ "'-]+""")


@dataclass(frozen=True, slots=True)
class _Program:
    """A program that only reads when it is called so."""

    options: str = r"(?!)"
    takes: Literal["nothing", "words", "names", "paths", "a pattern and paths"] = "nothing"


# No git: a repository names programs that git runs (fsmonitor, textconv, filters, external diffs, signatures, pagers),
# and so do the repositories inside of it. No option that follows links or goes down (`ls -L`, `ls -R`, `du -a`): what
# it comes by was not looked at. None that names a file (`grep -f`, `file -m`, `wc --files0-from`).
READERS = {
    "pwd": _Program(r"-[LP]"),
    "whoami": _Program(),
    "id": _Program(),
    "uptime": _Program(),
    "uname": _Program(r"-[amnoprsv]+"),
    "date": _Program(r"-u|\+.*"),
    "echo": _Program(r"-[neE]+", "words"),
    "which": _Program(r"-a", "names"),
    "ls": _Program(r"-[AaBCFGghiklmNnopQqrSstUuvXx1]+|--all|--almost-all|--human-readable", "paths"),
    "cat": _Program(r"-[AbEenstTuv]+", "paths"),
    "head": _Program(r"-[0-9]+|-[nc][0-9]*|-[qv]", "paths"),
    "tail": _Program(r"-[0-9]+|-[nc]\+?[0-9]*|-[qv]|\+[0-9]+", "paths"),
    "wc": _Program(r"-[clLmw]+", "paths"),
    "stat": _Program(takes="paths"),
    "file": _Program(r"-[bi]+|--brief|--mime-type", "paths"),
    "df": _Program(r"-[hiTk]+", "paths"),
    "du": _Program(r"-[chks]+", "paths"),
    "grep": _Program(r"-[cEFhHilnoqsvwx]+|-[ABC][0-9]+|-m[0-9]+|--color=never", "a pattern and paths"),
}
_DANGEROUS_PROGRAMS = frozenset(
    {
        *(
            "sudo",
            "doas",
            "su",
            "rm",
            "rmdir",
            "shred",
            "dd",
            "fdisk",
            "parted",
            "truncate",
            "chmod",
            "chown",
            "chattr",
        ),
        *("kill", "killall", "pkill", "shutdown", "reboot", "halt", "poweroff", "systemctl", "launchctl", "crontab"),
        *("mount", "umount", "iptables", "nft", "useradd", "userdel", "usermod", "passwd", "eval", "nc", "ncat"),
    }
)
_SAME = r"[^\n;&|]{0,200}?"  # within one command, and not so far that a long text takes long
_DANGEROUS_FORMS = re.compile(
    r"\|\s*(?:\S*/)?(?:sudo\s+)?(?:(?:ba|z|da|k|fi)?sh|python[\d.]*|perl|ruby|node|php)\b"  # what is fetched is run
    r"|>\s*/(?:dev/(?!null\b|std(?:out|err)\b)|etc/|boot/)"
    r"|\bmkfs\b|:\s*\(\s*\)\s*\{"
    rf"|\bgit\b{_SAME}(?:\bpush\b{_SAME}\s(?:-f|-d|--force|--delete|--mirror|\+)|\breset\b{_SAME}\s--hard|\bclean\b)"
    rf"|\bfind\b{_SAME}\s-(?:delete|exec|ok)"
)
_TOKEN = re.compile(r"[^\s;&|<>()`$\"'{}]+")

# What does one kind of thing whatever follows; of any other program, only the very same command is alike.
_ALIKE_PROGRAMS = frozenset({"pytest", "ruff", "mypy", "tox", "nox", "eslint", "prettier", "tsc"})
_ALIKE_COMMANDS = {
    "git": {"add", "commit", "fetch", "pull", "push", "checkout", "switch", "merge", "stash", "tag"},
    "cargo": {"build", "check", "clippy", "fmt", "test"},
    "go": {"build", "fmt", "test", "vet"},
    "npm": {"test"},
    "pnpm": {"test"},
    "yarn": {"test"},
}
_ALIKE_TARGETS = {"make": 2, "npm run": 3, "pnpm run": 3, "yarn run": 3}


def plain_words(command: str) -> list[str] | None:
    """The words of a command that starts one program with plain arguments, or None if a shell would do more."""
    if not _PLAIN.fullmatch(command):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return words if words and words[0] and "=" not in words[0] else None


def is_read_only(command: str, may_read: Callable[[str], bool]) -> bool:
    """Whether a command only shows things, all of which `may_read` admits."""
    words = plain_words(command)
    if words is None:
        return False
    program = READERS.get(words[0])
    if program is None:
        return False
    operands = _operands(words[1:], program.options)
    if operands is None or (operands and program.takes == "nothing"):
        return False
    if program.takes == "names" and any("/" in each for each in operands):
        return False
    paths = {"words": [], "names": [], "a pattern and paths": operands[1:]}.get(program.takes, operands)
    return all(map(may_read, paths))


def risk_of(command: str, is_protected: Callable[[str], bool]) -> Risk:
    """Whether a person should look twice: it destroys, takes over, hides something, or touches a protected place."""
    tokens = set(_TOKEN.findall(command))
    is_high = (
        any(token.rpartition("/")[2] in _DANGEROUS_PROGRAMS for token in tokens)
        or _DANGEROUS_FORMS.search(command) is not None
        or has_disguise(command)
        or any(is_protected(part) for token in tokens for part in {token, token.rpartition("=")[2]} if part)
    )
    return "high" if is_high else "normal"


def alike_prefix(command: str) -> str | None:
    """The words with which all commands of the same kind begin, or None if only the very same command is alike."""
    words = plain_words(command)
    if words is None:
        return None
    if words[0] in _ALIKE_PROGRAMS:
        return words[0]
    if words[1:] and words[1] in _ALIKE_COMMANDS.get(words[0], ()):
        return " ".join(words[:2])
    for start, count in _ALIKE_TARGETS.items():
        target = words[count - 1 : count]
        if words[: count - 1] == start.split() and target and re.fullmatch(r"\w[\w.:-]*", target[0]):
            return " ".join(words[:count])
    return None


def begins_alike(command: str, prefix: str) -> bool:
    """Whether a command is plain and begins with these words."""
    words, first = plain_words(command), prefix.split()
    return words is not None and bool(first) and words[: len(first)] == first


def _operands(words: Sequence[str], options: str) -> list[str] | None:
    """The words that are no options, or None if one of the options is not among those that are known."""
    operands: list[str] = []
    for place, word in enumerate(words):
        if word == "--":
            return [*operands, *words[place + 1 :]]
        if (word.startswith("-") and word != "-") or word.startswith("+"):
            if not re.fullmatch(options, word):
                return None
        else:
            operands.append(word)
    return operands
