"""Programs by what they do with text: run it, download it, decode it, or start another program."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.agent.safety.scanning.shell_text import ANY, COMPUTED, ONE

_SPLIT_OPTION = re.compile(r"-[A-Za-z0-9]{0,8}S|--split-string=?")
"""The options of env that split their text into words."""
WITH_ARGUMENT = {"sudo": "ughpCDRT", "doas": "uC", "run0": "", "ssh": "bcDEeFIiJLlmOopQRSWw"}
"""The options of wrappers that have an argument."""
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
MAX_WORDS = 24
"""How many words after a wrapper may be the program."""

_INTERPRETER = re.compile(
    r"(?:ba|z|da|k|mk|pdk|c|tc|fi|a|rba|r|pw|xon|nu|el|ya|po|hu|o|elvi)?sh(?:-?\d[\d.]*)?|i?python[\d.]*w?|pypy[\d.]*"
    r"|perl[\d.]*|ruby[\d.]*|irb|node(?:js)?|deno|bun|tsx|ts-node|php[\d.]*|lua(?:jit)?[\d.]*|tclsh[\d.]*|wish[\d.]*"
    r"|expect|osascript|rscript|guile|ghci|powershell|groovy|scala|jshell|julia|elixir|iex|erl|swift|source|\.|eval|at"
    r"|batch|ed|ex|m4|gdb|r|octave|ocaml|sbcl|clisp|racket|raku|janet|qjs|bpftrace|crontab|murex|oil|gnuplot",
)
_PLACEHOLDERS = frozenset({"{}", "%"})
_USUAL = ("sh", "bash", "dash", "zsh", "ksh", "python", "python3", "perl", "ruby", "node", "php", "eval", "source")
_MARKS, _MANY = re.compile(f"[{COMPUTED}{ANY}{ONE}]"), re.compile(f"[{COMPUTED}{ANY}]+")
_FORMS = {ANY: ".*", ONE: "."}
_MAX_PATTERN = 40
_READERS = re.compile(
    r"curl|wget2?|fetch|aria2c|axel|https?|xh|lynx|links|elinks|w3m|nc|ncat|netcat|socat|telnet|ftp|tftp|scp|rsync|dig"
    r"|base64|base32|basenc|xxd|openssl|uudecode|gunzip|zcat|gzip|bzcat|xzcat|unxz|zstdcat|rev|tr|printf|gpg"
)
_DOWNLOADERS = re.compile(r"curl|wget2?|fetch|aria2c|axel|https?|xh|scp|rsync|ftp|tftp")
_DECODERS = re.compile(r"base64|base32|basenc|xxd|openssl|uudecode")
_WRAPPERS = frozenset(
    {
        *(
            "sudo",
            "doas",
            "su",
            "run0",
            "pkexec",
            "env",
            "nohup",
            "exec",
            "command",
            "builtin",
            "time",
            "nice",
            "ionice",
        ),
        *(
            "stdbuf",
            "timeout",
            "setsid",
            "unbuffer",
            "chronic",
            "ifne",
            "busybox",
            "toybox",
            "xargs",
            "parallel",
            "chroot",
            "nsenter",
        ),
        *("unshare", "bwrap", "firejail", "watch", "script", "caffeinate", "setarch", "taskset", "chrt", "flock"),
        *("ssh", "docker", "podman", "kubectl", "lxc", "machinectl", "wsl", "tmux", "screen", "strace", "then", "do"),
        *("else", "elif", "if", "while", "until", "!", "{", "coproc", "function", "systemd-run", "rlwrap", "gosu"),
        *(
            "proot",
            "fakeroot",
            "fakechroot",
            "catchsegv",
            "valgrind",
            "ltrace",
            "setpriv",
            "runuser",
            "capsh",
            "prlimit",
        ),
        *("torsocks", "torify", "proxychains", "proxychains4", "eatmydata", "xvfb-run", "dbus-run-session", "winpty"),
        *("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi", "conda", "mamba", "micromamba", "npx", "bunx"),
        *("bundle", "direnv", "mise", "nix", "nix-shell", "flatpak", "snap", "snap-run", "distrobox", "toolbox"),
    }
)
"""Words before the program that is meant."""
_PLAIN_WRAPPERS = frozenset(
    {
        *("sudo", "doas", "env", "nohup", "exec", "command", "time", "setsid", "xargs", "busybox"),
        *("then", "do", "else", "elif", "if", "while", "until", "!", "{"),
    }
)
"""Wrappers whose first argument is the program; for others, such as ssh, it may be a host."""


def program_of(words: Sequence[str]) -> str:
    """Return the name of the program that words start; behind a wrapper, an interpreter if there is one."""
    at = 0
    while at < len(words) and ASSIGNMENT.fullmatch(words[at]):
        at += 1
    if at == len(words):
        return ""
    name = base_name(words[at])
    if name not in _WRAPPERS:
        return name
    behind = words[at + 1 : at + 1 + MAX_WORDS]
    if name == "env":
        behind = [part for each in behind for part in _SPLIT_OPTION.sub("", each, count=1).split()]
    rest = [base_name(each) for each in behind]
    first = next((each for each in rest if not each.startswith("-")), "")
    if first in _PLACEHOLDERS:
        return COMPUTED  # what is piped in names the program
    found = first if name in _PLAIN_WRAPPERS and first.startswith(COMPUTED) else name
    return next((each for each in rest if is_interpreter(each)), found)


def started_word(words: Sequence[str]) -> str:
    """Return the word that names the program, behind plain wrappers and their options; empty if there is none."""
    wrapper = ""
    rest = iter(words[:MAX_WORDS])
    for word in rest:
        if ASSIGNMENT.fullmatch(word):
            continue
        if wrapper and word.startswith("-"):
            if not word.startswith("--") and word[-1:] in WITH_ARGUMENT.get(wrapper, ""):
                next(rest, None)
            continue
        if base_name(word) not in _PLAIN_WRAPPERS:
            return word
        wrapper = base_name(word)
    return ""


def programs_in(words: Sequence[str], program: str) -> list[str]:
    """Return the names that may be the program: all words behind a wrapper."""
    named = list(map(base_name, words[:MAX_WORDS]))
    return named if named and named[0] in _WRAPPERS else [program]


def base_name(word: str) -> str:
    """Return a word without its directories, as a name of a program."""
    return word.rpartition("/")[2].casefold().removesuffix(".exe") if word != "." else word


def is_known(word: str) -> bool:
    """Whether a word is known before it is run."""
    return _MARKS.search(word) is None


def is_computed(name: str) -> bool:
    """Whether a name of a program is only known when it runs, and may be that of an interpreter: `$x`, `b?sh`."""
    if name.startswith(COMPUTED) or is_known(name):
        return name.startswith(COMPUTED)
    short = _MANY.sub(ANY, name)
    if len(short) > _MAX_PATTERN:
        return False
    form = re.compile("".join(_FORMS.get(each) or re.escape(each) for each in short))
    return any(map(form.fullmatch, _USUAL))


def is_interpreter(name: str) -> bool:
    """Whether a program runs text."""
    return _INTERPRETER.fullmatch(name) is not None


def is_reader(name: str) -> bool:
    """Whether a program downloads or decodes text."""
    return _READERS.fullmatch(name) is not None


def is_downloader(name: str) -> bool:
    """Whether a program downloads text."""
    return _DOWNLOADERS.fullmatch(name) is not None


def is_decoder(name: str) -> bool:
    """Whether a program returns other text than it gets, which no person can read before."""
    return _DECODERS.fullmatch(name) is not None
