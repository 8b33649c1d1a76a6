"""Finds text that a command gives to an interpreter: downloads that are run at once, or right after they are stored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile

from hermes.agent.safety.scanning.findings import Finding
from hermes.agent.safety.scanning.shell_text import COMPUTED, Stage, read_shell_text

RULE_PIPE, RULE_SUBSTITUTION = "pipe_to_interpreter", "run_substitution"
RULE_DOWNLOAD, RULE_NESTED = "run_download", "nested_too_deeply"

_INTERPRETER = re.compile(
    r"(?:ba|z|da|k|mk|pdk|c|tc|fi|a|rba|r|pw|xon|nu|el|ya)?sh\d?|python[\d.]*w?|pypy[\d.]*|perl[\d.]*|ruby[\d.]*|irb"
    r"|node(?:js)?|deno|bun|tsx|ts-node|php[\d.]*|lua(?:jit)?[\d.]*|tclsh[\d.]*|expect|osascript|rscript|guile|ghci"
    r"|powershell|groovy|scala|jshell|julia|elixir|iex|erl|swift|source|\.|eval|at|batch"
    r"|ed|ex|m4|gdb|r|octave|ocaml|sbcl|clisp|racket|raku|janet|qjs|bpftrace|crontab",
)
_READERS = re.compile(
    r"curl|wget2?|fetch|aria2c|axel|https?|xh|lynx|links|elinks|w3m|nc|ncat|netcat|socat|telnet|ftp|tftp|scp|rsync|dig"
    r"|base64|base32|basenc|xxd|openssl|uudecode|gunzip|zcat|gzip|bzcat|xzcat|unxz|zstdcat|rev|tr|printf|gpg"
)
"""Programs that download or decode text."""
_DOWNLOADERS = re.compile(r"curl|wget2?|fetch|aria2c|axel|https?|xh|scp|rsync|ftp|tftp")
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
        *("stdbuf", "timeout", "setsid", "unbuffer", "busybox", "toybox", "xargs", "parallel", "chroot", "nsenter"),
        *("unshare", "bwrap", "firejail", "watch", "script", "caffeinate", "setarch", "taskset", "chrt", "flock"),
        *("ssh", "docker", "podman", "kubectl", "lxc", "machinectl", "wsl", "tmux", "screen", "strace", "then", "do"),
        *("else", "elif", "if", "while", "until", "!", "{", "coproc", "function", "systemd-run", "rlwrap", "gosu"),
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
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_HELD = re.compile(r"[A-Za-z_]\w*\+?=.*\0.*", re.DOTALL)
_RUN_ALL = frozenset({"eval", "source", "."})
"""Interpreters that run every word after their name, or the file that it names."""
_READ_INTO = frozenset({"read", "mapfile", "readarray"})
_NETWORK_PROGRAMS = frozenset({"nc", "ncat", "netcat", "socat"})
_STARTED_BY_NETWORK = re.compile(r"-[a-z0-9]{0,8}[ec]|--(?:sh-)?exec(?:=.*)?|(?i:exec|system|shell):.*", re.DOTALL)
"""The options and addresses with which these programs give a connection to another program."""
_WITH_ARGUMENT = {"sudo": "ughpCDRT", "doas": "uC", "run0": "", "ssh": "bcDEeFIiJLlmOopQRSWw"}
"""The options of wrappers that have an argument."""
_SHELL_OPTION = re.compile(r"-[A-Za-z]{0,8}[si]|--shell|--login")
_COPIERS = frozenset({"tee", "sponge", "dd"})
_OUTPUT_OPTION = re.compile(r"(?:--output|--output-document|--out)(?:=(.+))?|-\w{0,8}[oO](.*)", re.DOTALL)
_SHELL_SOCKET = re.compile(r"[<>]&?\s*[\"']?/dev/(?:tcp|udp)/")
_USED_VARIABLE = re.compile(r"\$\{?(\w+)")
_MAX_WORDS = 24
"""How many words after a wrapper may be the program."""
_MAX_DEPTH = 6
_BUDGET, _LEAST_BUDGET = 3, 4_000
"""How many characters are read, for each character of the command and in any case."""
_MAX_FINDINGS = 8


def find_interpreters(command: str) -> list[Finding]:
    """Return a finding for each way in which a command runs text that it downloads, decodes or pipes."""
    return _Search(command).run()


class _Search:
    """Searches a command and the texts inside of it, as far as its budget goes."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._budget = _BUDGET * len(command) + _LEAST_BUDGET
        self._seen: set[tuple[str, bool]] = set()
        self._found: dict[str, Finding] = {}

    def run(self) -> list[Finding]:
        self._search(self._command, is_fed=False, depth=0)
        if _SHELL_SOCKET.search(self._command):
            self._add(Finding(RULE_DOWNLOAD, "connects the shell to a server (/dev/tcp)"))
        return list(self._found.values())[:_MAX_FINDINGS]

    def _search(self, text: str, *, is_fed: bool, depth: int) -> None:
        if (text, is_fed) in self._seen or len(self._found) >= _MAX_FINDINGS:
            return
        if depth > _MAX_DEPTH or len(text) > self._budget:
            self._add(Finding(RULE_NESTED, "is nested too deeply to be checked"))
            return
        self._seen.add((text, is_fed))
        self._budget -= len(text)
        shell_text = read_shell_text(text, is_fed=is_fed)
        if not shell_text.is_complete:
            self._add(Finding(RULE_NESTED, "has too many parts to be checked"))
        used = set(_USED_VARIABLE.findall(text))
        downloaded: set[str] = set()
        variables: dict[str, str] = {}
        is_download = False
        for stage in shell_text.stages:
            program = _program(stage.words)
            self._add(*_of_stage(stage, program))
            if variables and _runs_computed(program, stage.words):
                for name in sorted(used.intersection(variables)):
                    reader = variables[name]
                    self._add(Finding(RULE_SUBSTITUTION, f"runs what {_shown(reader)} returns, through ${name}"))
            variables |= _held_by(stage)
            if program in ("cd", "pushd"):
                downloaded |= {each.rpartition("/")[2] for each in downloaded}
            if program and downloaded and (_is_interpreter(program) or _is_run(program, stage.words)):
                for name in sorted(downloaded.intersection(map(_plain_path, stage.words))):
                    self._add(Finding(RULE_DOWNLOAD, f"runs {_shown(name)}, which the same command downloads"))
            is_download = _is_downloader(stage) or (is_download and stage.is_fed)
            downloaded |= _stored_by(stage) if _is_downloader(stage) else _passed_on(stage) if is_download else set()
            for inner in stage.inner:
                self._search(inner, is_fed=False, depth=depth + 1)
            for inner in stage.fed:
                self._search(inner, is_fed=True, depth=depth + 1)
        for quoted in shell_text.quoted:
            self._search(quoted, is_fed=False, depth=depth + 1)

    def _add(self, *findings: Finding) -> None:
        for each in findings:
            self._found.setdefault(each.text, each)


def _of_stage(stage: Stage, program: str) -> Iterator[Finding]:
    if stage.is_fed and COMPUTED in program:
        yield Finding(RULE_PIPE, "pipes text into a program whose name is only known when it runs")
    elif stage.is_fed and _is_interpreter(program):
        yield Finding(RULE_PIPE, f"pipes text into {_shown(program)}, which may run it")
    elif stage.is_fed and _starts_shell(stage.words):
        yield Finding(RULE_PIPE, f"pipes text into {_shown(program)}, which starts a shell")
    words = stage.words[:_MAX_WORDS]
    named = list(map(_base_name, words))
    behind = named if named and named[0] in _WRAPPERS else [program]
    network = next((each for each in behind if each in _NETWORK_PROGRAMS), "")
    if network and any(map(_STARTED_BY_NETWORK.fullmatch, words)):
        yield Finding(RULE_DOWNLOAD, f"lets {network} connect another program to the network")
    if not stage.inner or not (_is_interpreter(program) or program.startswith(COMPUTED)):
        return
    reader = next(filter(None, map(_reader_in, stage.inner)), "")
    if reader:
        yield Finding(RULE_SUBSTITUTION, f"runs what {_shown(reader)} returns")
    elif stage.is_from_process and _is_interpreter(program):
        yield Finding(RULE_SUBSTITUTION, f"lets {_shown(program)} run the output of another command")


def _program(words: Sequence[str]) -> str:
    """Return the name of the program that a stage starts; behind a wrapper, an interpreter if there is one."""
    at = 0
    while at < len(words) and _ASSIGNMENT.fullmatch(words[at]):
        at += 1
    if at == len(words):
        return ""
    name = _base_name(words[at])
    if name not in _WRAPPERS:
        return name
    behind = words[at + 1 : at + 1 + _MAX_WORDS]
    if name == "env":  # -S splits its text into words
        behind = [part for each in behind for part in each.removeprefix("-S").split()]
    rest = [_base_name(each) for each in behind]
    first = next((each for each in rest if not each.startswith("-")), "")
    found = first if name in _PLAIN_WRAPPERS and first.startswith(COMPUTED) else name
    return next((each for each in rest if _is_interpreter(each)), found)


def _base_name(word: str) -> str:
    return word.rpartition("/")[2].casefold().removesuffix(".exe") if word != "." else word


def _is_interpreter(name: str) -> bool:
    return _INTERPRETER.fullmatch(name) is not None


def _starts_shell(words: Sequence[str]) -> bool:
    """Whether a wrapper starts a shell that reads its input: `sudo -s`, `su -`, `ssh HOST`."""
    words = list(dropwhile(_ASSIGNMENT.fullmatch, words))
    name = _base_name(words[0]) if words else ""
    if name == "su":
        return "-c" not in words
    if name not in _WITH_ARGUMENT:
        return False
    names: list[str] = []
    rest = iter(words[1 : 1 + _MAX_WORDS])
    for word in rest:
        if not word.startswith("-"):
            names.append(word)
        elif name != "ssh" and not names and _SHELL_OPTION.fullmatch(word):
            return True
        elif not word.startswith("--") and word[-1:] in _WITH_ARGUMENT[name]:
            next(rest, None)
    return name == "ssh" and len(names) == 1


def _reader_in(text: str) -> str:
    """Return the program in a substitution that downloads or decodes text; empty if there is none."""
    for stage in read_shell_text(text).stages:
        name = _program(stage.words)
        for each in (name, *map(_base_name, stage.words[:_MAX_WORDS] if name in _WRAPPERS else ())):
            if _READERS.fullmatch(each):
                return each
    return ""


def _runs_computed(program: str, words: Sequence[str]) -> bool:
    """Whether a stage runs the text of a variable: as its program, or as the text for an interpreter."""
    if program.startswith(COMPUTED):
        return True
    if not _is_interpreter(program):
        return False
    at = next((place for place, each in enumerate(words) if _base_name(each) == program), 0)
    for word in words[at + 1 : at + 1 + _MAX_WORDS]:
        if COMPUTED in word:
            return True
        if not word.startswith("-") and program not in _RUN_ALL:
            return False  # a script, and what follows are its arguments
    return False


def _held_by(stage: Stage) -> dict[str, str]:
    """Return the variables that get a downloaded or decoded text, with the program that returns it."""
    if not stage.inner:
        return {}
    names = [each.partition("=")[0].removesuffix("+") for each in stage.words if _HELD.fullmatch(each)]
    if _READ_INTO.intersection(stage.words):
        names += [each for each in stage.words if each.isidentifier() and each not in _READ_INTO]
    reader = next(filter(None, map(_reader_in, stage.inner)), "") if names else ""
    return dict.fromkeys(names, reader) if reader else {}


def _is_downloader(stage: Stage) -> bool:
    return any(_DOWNLOADERS.fullmatch(_base_name(each)) for each in stage.words[:_MAX_WORDS])


def _passed_on(stage: Stage) -> set[str]:
    """Return the files in which a later stage of a pipeline stores a download."""
    is_copy = any(_base_name(each) in _COPIERS for each in stage.words[:_MAX_WORDS])
    named = [each.removeprefix("of=") for each in stage.words if not each.startswith("-")] if is_copy else []
    return {_plain_path(each) for each in (*stage.written, *named) if each.strip("-./")}


def _stored_by(stage: Stage) -> set[str]:
    """Return the files in which a download is stored."""
    words = stage.words
    names = list(stage.written)
    is_wget = any(_base_name(each) in ("wget", "wget2") for each in words[:_MAX_WORDS])
    for place, word in enumerate(words):
        option = _OUTPUT_OPTION.fullmatch(word)
        if option is not None:
            names += [option[1] or option[2] or "", *words[place + 1 : place + 2]]
        elif "://" in word or (is_wget and place and "/" in word and not word.startswith("-")):
            names.append(word.partition("?")[0].rpartition("/")[2])
    return {_plain_path(each) for each in names if each.strip("-./")}


def _is_run(program: str, words: Sequence[str]) -> bool:
    """Whether a stage starts a file by its path, or makes one executable."""
    return program == "chmod" or any("/" in each for each in words[:1])


def _plain_path(word: str) -> str:
    return word.removeprefix("./")


def _shown(name: str) -> str:
    from hermes.agent.safety.visible_text import make_path_visible

    return make_path_visible(name.replace(COMPUTED, "*")[:60])
