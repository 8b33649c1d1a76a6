"""Commands that differ only in what they look at: a permission for a session can cover all of one kind.

A kind is the beginning of a command, such as `git log`. After it come only known options and files of the session's
directory. A command in which a shell would do more than start one program has no kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hermes.agent.safety.commands import HARMLESS_OPTIONS, plain_words

_NUMBER = "[0-9]{1,6}"
_OF_COMMITS = rf"-{_NUMBER}|-n{_NUMBER}|--(?:oneline|stat|graph|all|decorate|reverse|no-merges|follow)"
_OF_CHANGES = rf"-[pwb]|-U{_NUMBER}|--(?:stat|shortstat|cached|staged|name-only|name-status|word-diff|no-color|summary)"

# Options that name no file and no program, take no value from the next word, and change nothing. Not in the list:
# programs that run what their words say (`npm run`, `make`, `python`), and those that read what was never checked
# (`grep -r`, `rg`).
OPTIONS = {
    "git status": r"-[sb]|-sb|-u(?:no|normal|all)|--(?:short|branch|porcelain|long|ignored)",
    "git log": f"{_OF_COMMITS}|{_OF_CHANGES}",
    "git diff": _OF_CHANGES,
    "git show": f"{_OF_COMMITS}|{_OF_CHANGES}",
    "git blame": r"-[lsw]",
    "git ls-files": r"-[cdmo]|--(?:cached|deleted|modified|others|exclude-standard)",
    "git add": r"-[vn]|--(?:verbose|dry-run)",
    "ruff check": r"-q|--(?:quiet|statistics|no-fix)",
    "mypy": r"--(?:strict|pretty|show-error-codes)",
    **{
        kind: "|".join(re.escape(each).replace("N", "[0-9]{1,2}") for each in options)
        for kind, options in HARMLESS_OPTIONS.items()
        if kind != "make"
    },
}
_OPTIONS = {kind: re.compile(options) for kind, options in OPTIONS.items()}
_SEPARATOR = re.compile("[:/]")
_WORD = re.compile(r"[A-Za-z0-9_.@^:/][A-Za-z0-9_.@^:/+,%-]*")


def kind_of(command: str, may_use: Callable[[str], bool]) -> str | None:
    """Return the kind of a command, or None; `may_use` returns whether a word is no path outside of the directory."""
    words = plain_words(command)
    if words is None:
        return None
    for kind, options in _OPTIONS.items():
        names = kind.split()
        if words[: len(names)] == names:
            rest = words[len(names) :]
            is_similar = all(options.fullmatch(each) or (_is_word(each, kind) and may_use(each)) for each in rest)
            return kind if is_similar else None
    return None


def _is_word(word: str, kind: str) -> bool:
    """Whether a word is an operand that stays below the directory, and no file of further options."""
    if word.startswith("@") and not kind.startswith("git "):  # `ruff check @x` reads options from x; git means a commit
        return False
    parts = _SEPARATOR.split(word)
    return _WORD.fullmatch(word) is not None and not word.startswith("/") and ".." not in parts
