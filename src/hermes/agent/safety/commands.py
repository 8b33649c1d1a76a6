"""Classifies shell commands before they run: read-only, dangerous, and which options a permission may cover.

Nothing here runs a command. A command is read-only if it is one well-known program with plain, known arguments; every
other command needs approval.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from hermes.agent.safety.scanning.patterns import MAX_CHARACTERS, find_patterns

Risk = Literal["normal", "high"]

# No character that makes a shell do more than start a program.
_PLAIN = re.compile(r"""[A-Za-z0-9_@%+=:,./^ "'-]+""")


@dataclass(frozen=True, slots=True)
class _Program:
    """A program that only reads when called with these options and operands."""

    options: str = r"(?!)"
    takes: Literal["nothing", "words", "names", "paths", "a pattern and paths"] = "nothing"


# No git: a repository names programs that git runs (fsmonitor, textconv, filters, external diffs, signatures, pagers),
# and so do the repositories inside of it. No option that follows links or descends (`ls -L`, `ls -R`, `du -a`): the
# files it reaches were not checked. No option with a file name (`grep -f`, `file -m`, `wc --files0-from`).
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
_OPTIONS = {name: re.compile(program.options) for name, program in READERS.items()}
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
        *("pkexec", "run0", "nsenter", "chroot", "unlink", "wipefs"),
        *("gdb", "gcore", "strace", "ltrace"),  # they read the memory of other processes
    }
)
_SAME = r"[^\n;&|]{0,200}?"  # within one command, and limited, so that a long text does not take long
_DANGEROUS_FORMS = {
    "writes to a device or to the settings of the system": re.compile(
        r">\s*/(?:dev/(?!null\b|std(?:out|err)\b)|etc/|boot/)"
    ),
    "reads the variables of other processes": re.compile(r"/environ\b|\bps\s+[a-z]{0,8}e[a-z]{0,8}\b"),
    "formats a disk": re.compile(r"\bmkfs\b"),
    "starts itself without end": re.compile(r":\s*\(\s*\)\s*\{"),
    "lets find delete files or run a program": re.compile(
        rf"\bfind\b{_SAME}\s-(?:delete|ok|exec(?:dir)?(?!\s+(?:grep|wc|ls|stat|file|basename|dirname|du|head|tail|md5sum|sha256sum)\s))"
    ),
}
_CHMOD = re.compile(r"chmod(?!\s+[ugoa]{0,4}\+x\s)")
_RUNNABLE = re.compile(r"[ugoa]{0,4}\+x")
_GIT = re.compile(r"\bgit\b")
_GIT_FORMS = re.compile(
    rf"\bpush\b{_SAME}\s(?:-f|-d|--force|--delete|--mirror|--prune|\+|:)|\breset\b{_SAME}\s--hard|\bclean\b"
    rf"|\b(?:branch|tag)\b{_SAME}\s(?:-[dD]|--delete)\b|\b(?:checkout|switch)\b{_SAME}\s(?:-f\b|--(?:force|discard-changes)?(?:\s|\Z))"
    rf"|\bcheckout\b{_SAME}\s\./?(?:\s|\Z)|\breflog\s+(?:expire|delete)\b|\bupdate-ref\s+-d\b|\bgc\b{_SAME}\s--prune=(?:now|all)"
    r"|(?<=git )restore\b|\bstash\s+(?:drop|clear)\b|\bworktree\s+remove\b|\bfilter-branch\b"
)
_COMMIT_MESSAGE = re.compile(
    r"""\A([^"'`\\$<\n]{0,400}?\bgit\s+(?:-C\s+[\w./-]+\s+)?(?:commit|tag)\b[^"'`\\$<>;&|\n]{0,200}?\s(?:-[a-z]{0,4}m|--message)(?:\s+|=))"""
    r"""(?:"[^"\\$`]*"|'[^']*'|"\$\(cat\s+<<\s?'(?P<end>\w{1,20})'\n(?:(?!(?P=end)\n).*\n)*+(?P=end)\n\s*\)")"""
)
"""A message of a commit in plain quotes, with no quote before it: a shell reads nothing in it."""
_MAX_MESSAGES = 8
_SEPARATOR = re.compile(r"[\n;&|]")
_TOKEN = re.compile(r"[^\s;&|<>()`$\"'{}]+")
_PART = re.compile(r"[=@:,]")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
MAX_PATHS = 5_000
"""Each path takes several calls of the system to check."""
_HARMLESS_DEVICES = frozenset(
    f"/dev/{name}" for name in ("null", "zero", "random", "urandom", "stdin", "stdout", "stderr")
)

# Options that do not change what a command can do: they take no value from the next word, name no file and no program,
# and write nowhere else. N is a number. For any other option, a permission covers only the identical command.
HARMLESS_OPTIONS = {
    "pytest": ("-q", "-qq", "-v", "-vv", "-x", "-l", "--lf", "--ff", "--tb=short", "--tb=long", "--tb=line", "--tb=no"),
    "make": ("-k", "-s", "-jN"),
    "cargo build": ("-q", "-v", "--release"),
    "cargo check": ("-q", "-v", "--release"),
    "cargo test": ("-q", "-v", "--release"),
    "go build": ("-v", "-race"),
    "go test": ("-v", "-race", "-short", "-count=N"),
    "go vet": ("-v",),
}
_BARE = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:-]*")


def plain_words(command: str) -> list[str] | None:
    """Return the words of a command that starts one program with plain arguments, or None if a shell would do more."""
    if not _PLAIN.fullmatch(command):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return words if words and words[0] and "=" not in words[0] else None


def is_read_only(command: str, may_read: Callable[[str], bool]) -> bool:
    """Whether a command only reads, and `may_read` allows all its paths."""
    words = plain_words(command)
    if words is None:
        return False
    program = READERS.get(words[0])
    if program is None:
        return False
    operands = _operands(words[1:], _OPTIONS[words[0]])
    if operands is None or (operands and program.takes == "nothing"):
        return False
    if program.takes == "names" and any("/" in each for each in operands):
        return False
    paths = {"words": [], "names": [], "a pattern and paths": operands[1:]}.get(program.takes, operands)
    return all(map(may_read, paths))


def risk_of(command: str, is_protected: Callable[[str], bool], variables: Mapping[str, str] | None = None) -> Risk:
    """Return high for a command in which `dangers_in` finds anything."""
    return "high" if dangers_in(command, is_protected, variables) else "normal"


def dangers_in(
    command: str, is_protected: Callable[[str], bool], variables: Mapping[str, str] | None = None
) -> list[str]:
    """Return why a command is dangerous: it destroys, takes control, hides something or touches a protected place.

    Each reason follows "it" in a sentence. The usual forms are recognized, not every one. `variables` are those that
    the shell of the command has.
    """
    dangers = [each.text for each in find_patterns(command)]
    if len(command) > MAX_CHARACTERS:
        return dangers
    command = _without_messages(command)
    words = _shell_words(command, variables or {})
    tokens = {*_TOKEN.findall(command), *words}
    programs = {token.rpartition("/")[2] for token in tokens} & _DANGEROUS_PROGRAMS
    if "chmod" in programs and _only_makes_runnable(command, words):
        programs.remove("chmod")
    if programs:
        dangers.append(f"uses {', '.join(sorted(programs))}")
    dangers += [text for text, form in _DANGEROUS_FORMS.items() if form.search(command)]
    if any(map(_is_dangerous_git, _SEPARATOR.split(command))):
        dangers.append("lets git discard something")
    parts = _parts(tokens) - _HARMLESS_DEVICES
    if sum(map(_is_path, parts)) > MAX_PATHS:
        dangers.append("names too many paths to be checked")
    elif any(map(is_protected, parts)):
        dangers.append("names a protected path")
    return dangers


def _without_messages(command: str) -> str:
    """Return a command with a word instead of each message of a commit, which may mention any program and any path."""
    for _ in range(_MAX_MESSAGES):
        command, count = _COMMIT_MESSAGE.subn(r"\1message", command)
        if not count:
            break
    return command


def _shell_words(command: str, variables: Mapping[str, str]) -> list[str]:
    """Return the words of a command as a shell reads them: without quotes and backslashes, with known variables."""
    text = _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0]), command)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:  # an open quote
        return []


def _parts(tokens: Iterable[str]) -> set[str]:
    """Return tokens and what is between `=`, `@`, `:` and `,` in them: `--file=x`, `-F f=@x`, `-v x:/y`."""
    return {part for token in tokens for part in (token, *_PART.split(token)) if part}


def _only_makes_runnable(command: str, words: Sequence[str]) -> bool:
    """Whether each `chmod` of a command is `chmod +x`, as it is written and as a shell reads it."""
    modes = (mode for word, mode in pairwise([*words, ""]) if word.rpartition("/")[2] == "chmod")
    return _CHMOD.search(command) is None and all(map(_RUNNABLE.fullmatch, modes))


def _is_path(word: str) -> bool:
    return "/" in word or word.startswith((".", "~"))


def _is_dangerous_git(command: str) -> bool:
    """Whether a command makes git discard something."""
    git = _GIT.search(command)
    return git is not None and _GIT_FORMS.search(command, git.end()) is not None


def harmless_options(words: Sequence[str]) -> tuple[str, ...]:
    """Return the options that do not change what a command can do."""
    return HARMLESS_OPTIONS.get(" ".join(words[:1])) or HARMLESS_OPTIONS.get(" ".join(words[:2])) or ()


def bare_command(command: str) -> str | None:
    """Return a command without its harmless options, or None if it has other options or is not a known command."""
    words = plain_words(command)
    options = harmless_options(words or [])
    if not words or not options:
        return None
    is_harmless = re.compile("|".join(re.escape(each).replace("N", "[0-9]{1,2}") for each in options)).fullmatch
    bare = [word for word in words if not is_harmless(word)]
    # Any other option could take the next word as its value, and `NAME=value` could name a program.
    return " ".join(bare) if all(map(_BARE.fullmatch, bare)) else None


def _operands(words: Sequence[str], options: re.Pattern[str]) -> list[str] | None:
    """Return the words that are not options, or None if an option is unknown."""
    operands: list[str] = []
    for place, word in enumerate(words):
        if word == "--":
            return [*operands, *words[place + 1 :]]
        if (word.startswith("-") and word != "-") or word.startswith("+"):
            if not options.fullmatch(word):
                return None
        else:
            operands.append(word)
    return operands
