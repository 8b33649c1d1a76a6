"""Finds text that a command gives to an interpreter: downloads that are run at once, or right after they are stored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile, pairwise

from hermes.agent.safety.scanning.downloads import INPUT, Downloads, reader_of
from hermes.agent.safety.scanning.findings import Finding
from hermes.agent.safety.scanning.own_programs import has_own_program
from hermes.agent.safety.scanning.programs import (
    ASSIGNMENT,
    MAX_WORDS,
    WITH_ARGUMENT,
    base_name,
    is_computed,
    is_interpreter,
    program_of,
    programs_in,
    started_word,
)
from hermes.agent.safety.scanning.shell_text import ANY, COMPUTED, ENDS, ONE, Stage, read_shell_text

RULE_PIPE, RULE_SUBSTITUTION = "pipe_to_interpreter", "run_substitution"
RULE_DOWNLOAD, RULE_NESTED = "run_download", "nested_too_deeply"

_RUN_ALL = frozenset({"eval", "source", "."})
"""Interpreters that run every word after their name, or the file that it names."""
_NETWORK_PROGRAMS = frozenset({"nc", "ncat", "netcat", "socat"})
_STARTED_BY_NETWORK = re.compile(r"-[a-z0-9]{0,8}[ec]|--(?:sh-)?exec(?:=.*)?|(?i:exec|system|shell):.*", re.DOTALL)
"""The options and addresses with which these programs give a connection to another program."""
_INSTALLERS = re.compile(
    r"dpkg|rpm|apk|pacman|apt(?:-get)?|dnf|yum|zypper|brew|installer|pip[\d.]*|pipx|npm|gem|snap|flatpak"
)
"""Programs that run what is in the packages that they install."""
_RUN_LATER = frozenset(
    (
        *("BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS4", "LD_PRELOAD", "GIT_SSH_COMMAND", "GIT_PAGER"),
        *("PAGER", "EDITOR", "VISUAL", "PYTHONSTARTUP", "PERL5OPT", "NODE_OPTIONS", "GIT_EXTERNAL_DIFF"),
    )
)
"""Variables whose value, or the file that it names, is run by the shell or by other programs."""
_RUNNERS = re.compile(r"deno|bunx?|npx|pnpx|uvx?|pipx")
"""Programs that run what is at an address."""
_VERBS = frozenset({"run", "x", "exec", "dlx", "install", "add", "tool", "i"})
_ADDRESS = re.compile(r"https?://\S+")
_ADDRESS_OPTION = re.compile(r"-[ifrc]|--(?:[a-z]+-)*(?:url|links|index|proxy|registry|host|config)")
"""Options whose value is an address that is not run."""
_COMPUTED = re.compile(f"[{COMPUTED}{ANY}{ONE}]")
_SHELL_OPTION = re.compile(r"-[A-Za-z]{0,8}[si]|--shell|--login")
_LETTER = re.compile(r"-[A-Za-z]{1,3}")
"""An option that may have the next word as its value."""
_SHELL_SOCKET = re.compile(r"[<>]&?\s*[\"']?/dev/(?:tcp|udp)/")
_POWERSHELL = re.compile(
    r"\b(?:iex|invoke-expression)\b[^\n]{0,80}\b(?:iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring)\b"
    r"|\b(?:iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring)\b[^\n|]{0,200}\|\s{0,8}(?:iex|invoke-expression)\b"
    r"|\b(?:powershell|pwsh)(?:\.exe)?\s[^\n|;&]{0,80}?-e(?:c|nc|ncodedcommand)?\s",
    re.IGNORECASE,
)
_USED_VARIABLE = re.compile(r"\$\{?(\w+|[@*])")
_AWK_RUNS = re.compile(
    r"-f ?(?:-|/dev/stdin)|.*(?:\bsystem\s{0,4}\(|\|\s{0,4}\"(?:[^\" ]{0,40}/)?(?:ba|da|z|k)?sh\b).*", re.DOTALL
)
_SED_RUNS = re.compile(
    r"(?:-\w{0,4}e)?(?:[\d,$]{0,20}|.{0,400}[;}])\s{0,4}e(?:\s.*)?"
    r"|s(\W)(?:(?!\1).){0,400}+\1(?:(?!\1).){0,400}+\1[gpiIm\d]{0,8}e\w{0,8}",
    re.DOTALL,
)
_FROM_INPUT = re.compile(r"-|/dev/stdin")
_SCRIPT_OF_EDITOR = re.compile(r"-[eE]?s\w{0,4}|-S")
_RUN_INPUT = {
    "awk": _AWK_RUNS.fullmatch,
    "sed": _SED_RUNS.fullmatch,
    **dict.fromkeys(("uv", "go", "tcc", "make", "gmake"), _FROM_INPUT.fullmatch),
    **dict.fromkeys(("vi", "vim", "nvim"), _SCRIPT_OF_EDITOR.fullmatch),
}
"""Programs that run their input only if one of their words, or two of them, are like this."""
_SAME_AS = {"gawk": "awk", "mawk": "awk", "nawk": "awk", "original-awk": "awk", "gsed": "sed"}
_DEFINED = re.compile(r"\balias\s{1,8}([\w.-]{1,80})=|(?<![\w$.-])([\w.-]{1,80})\s{0,8}\(\s{0,8}\)")
_OBTAINS = re.compile(
    r"urlopen|urlretrieve|requests\.|httpx|http\.client|net/http|open-uri|\bLWP\b|IO::Socket|\bsocket\b|\bfetch\s{0,4}\("
    r"|[bB](?:ase)?64|\batob\b|\bfromhex\b|unhexlify|file_get_contents\s{0,4}\(\s{0,4}[\"'](?:https?:|php:)|require\s{0,4}\(\s{0,4}[\"'](?:node:)?(?:https?|net)[\"']"
)
_RUNS = re.compile(r"\b(?:exec\w{0,8}|eval|system|popen|subprocess|spawn\w{0,4}|child_process|pty|Function)\b")
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
        self._defined = {alias or function for alias, function in _DEFINED.findall(command)}
        """Names that the command itself gives to commands."""

    def run(self) -> list[Finding]:
        self._search(self._command, is_fed=False, depth=0)
        if _SHELL_SOCKET.search(self._command):
            self._add(Finding(RULE_DOWNLOAD, "connects the shell to a server (/dev/tcp)"))
        if _POWERSHELL.search(self._command):
            self._add(Finding(RULE_DOWNLOAD, "lets PowerShell run text that is downloaded or encoded"))
        return list(self._found.values())[:_MAX_FINDINGS]

    def _search(self, text: str, *, is_fed: bool, depth: int, variables: Mapping[str, str] | None = None) -> None:
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
        downloads = Downloads(shell_text.stages, variables or {})
        has_ends = any(each.words and each.words[0] in ENDS for each in shell_text.stages)
        runners = sorted({*_running(shell_text.stages)})[:_MAX_FINDINGS] if has_ends else []
        for stage in shell_text.stages:
            program = program_of(stage.words)
            self._add(*_of_stage(stage, program))
            if stage.is_fed and program in self._defined:
                self._add(Finding(RULE_PIPE, f"pipes text into {_shown(program)}, which it defines itself"))
            self._add(*_of_downloads(stage, program, downloads, used))
            if runners and stage.words and stage.words[0] in ENDS:
                self._add(*_of_compound(stage, runners, downloads, used))
            if self._defined and (is_interpreter(program) or is_computed(program)):
                self._add(*_of_functions(stage, program, self._defined))
            downloads.note(stage, program)
            for inner in stage.inner:
                self._search(inner, is_fed=False, depth=depth + 1, variables=downloads.variables)
            for inner in stage.fed:
                self._search(inner, is_fed=True, depth=depth + 1)
        for quoted in shell_text.quoted:
            self._search(quoted, is_fed=False, depth=depth + 1, variables=downloads.variables)

    def _add(self, *findings: Finding) -> None:
        for each in findings:
            self._found.setdefault(each.text, each)


def _of_stage(stage: Stage, program: str) -> Iterator[Finding]:
    """Yield what one stage alone shows."""
    if stage.is_fed and is_computed(program):
        yield Finding(RULE_PIPE, "pipes text into a program whose name is only known when it runs")
    elif stage.is_fed and (
        (is_interpreter(program) and not has_own_program(stage.words)) or _runs_input(stage, program)
    ):
        yield Finding(RULE_PIPE, f"pipes text into {_shown(program)}, which may run it")
    elif stage.is_fed and _starts_shell(stage.words):
        yield Finding(RULE_PIPE, f"pipes text into {_shown(program)}, which starts a shell")
    if stage.words[:1] == ["coproc"] and is_interpreter(program):
        yield Finding(RULE_PIPE, f"starts {_shown(program)} in the background, which may run what it gets")
    behind = programs_in(stage.words, program)
    network = next((each for each in behind if each in _NETWORK_PROGRAMS), "")
    if network and any(map(_STARTED_BY_NETWORK.fullmatch, stage.words[:MAX_WORDS])):
        yield Finding(RULE_DOWNLOAD, f"lets {network} connect another program to the network")
    if is_interpreter(program) and any(_OBTAINS.search(each) and _RUNS.search(each) for each in stage.words):
        yield Finding(RULE_DOWNLOAD, f"lets {_shown(program)} run text that it downloads or decodes")
    for name in sorted(_RUN_LATER.intersection(each.partition("=")[0] for each in stage.words if "=" in each)):
        if reader := reader_of(stage):
            yield Finding(RULE_SUBSTITUTION, f"runs what {_shown(reader)} returns, through ${name}")
    runs_file = is_interpreter(program) or (stage.is_from_process and program in ("make", "gmake"))
    if not stage.inner or not (runs_file or is_computed(program)):
        return
    reader = reader_of(stage)
    if reader:
        yield Finding(RULE_SUBSTITUTION, f"runs what {_shown(reader)} returns")
    elif stage.is_from_process and is_interpreter(program):
        yield Finding(RULE_SUBSTITUTION, f"lets {_shown(program)} run the output of another command")


def _of_downloads(stage: Stage, program: str, downloads: Downloads, used: set[str]) -> Iterator[Finding]:
    """Yield what a stage shows together with those before it."""
    if downloads.variables and _runs_computed(program, stage.words):
        passed_over = () if is_interpreter(program) else downloads.inherited
        for name in sorted(used.intersection(downloads.variables).difference(passed_over)):
            reader = downloads.variables[name]
            yield Finding(RULE_SUBSTITUTION, f"runs what {_shown(reader)} returns, through ${name}")
    behind = programs_in(stage.words, program)
    installer = next(filter(_INSTALLERS.fullmatch, behind), "")
    runner = installer or next(filter(_RUNNERS.fullmatch, behind), "")
    if runner and (address := _run_address(stage.words, runner)):
        yield Finding(RULE_DOWNLOAD, f"lets {_shown(runner)} run what is at {_shown(address)}")
    can_run = is_interpreter(program) or is_computed(program)
    if not program or not (can_run or installer or _is_run(program, stage.words)):
        return
    if downloads.is_open and can_run:
        yield Finding(RULE_SUBSTITUTION, f"may let {_shown(program)} run what the shell has opened before")
    words = _files_run(stage.words, program, is_installer=bool(installer))
    verb = "installs" if installer and not is_interpreter(program) else "runs"
    stored = [] if downloads.is_empty else sorted(filter(downloads.is_stored, words))
    for name in stored:
        shown = _shown(name.removeprefix("./"))
        yield Finding(RULE_DOWNLOAD, f"{verb} {shown}, which the same command downloads or decodes")
    if downloads.has_unpacked and not stored and (script := _script(program, stage.words)):
        yield Finding(RULE_DOWNLOAD, f"runs {_shown(script)} after it has unpacked or cloned other files")


def _of_compound(stage: Stage, runners: Iterable[str], downloads: Downloads, used: set[str]) -> Iterator[Finding]:
    """Yield what the end of a loop or a condition shows: what it reads is the input of the `runners` in it."""
    is_stored = any(map(downloads.is_stored, stage.words)) or any(map(INPUT.fullmatch, stage.words))
    if is_stored or reader_of(stage) or used.intersection(downloads.variables):
        for each in runners:
            yield Finding(RULE_SUBSTITUTION, f"may let {each} run what it downloads or decodes")


def _running(stages: Iterable[Stage]) -> Iterator[str]:
    """Yield the programs of stages that may run their input, as a user sees them."""
    for words in (each.words for each in stages):
        program = program_of(words)
        if is_computed(program) or (is_interpreter(program) and not has_own_program(words)):
            yield _shown(program)


def _of_functions(stage: Stage, program: str, defined: set[str]) -> Iterator[Finding]:
    """Yield a finding if a stage runs what a function returns that the command itself defines."""
    called = {program_of(each.words) for text in stage.inner for each in read_shell_text(text).stages}
    for name in sorted(called & defined):
        yield Finding(
            RULE_SUBSTITUTION, f"lets {_shown(program)} run what {_shown(name)} returns, which it defines itself"
        )


def _run_address(words: Sequence[str], runner: str) -> str:
    """Return the address whose content a program runs or installs; empty if there is none."""
    before = runner
    for word in _arguments(runner, words):
        if _ADDRESS.fullmatch(word):
            return "" if _ADDRESS_OPTION.fullmatch(before) else word
        if not word.startswith("-") and word not in _VERBS:
            return ""
        before = word
    return ""


def _runs_input(stage: Stage, program: str) -> bool:
    """Whether a program that is no interpreter runs its input because of its options."""
    if program == "parallel":
        return all(each.startswith("-") for each in stage.words[1:])
    runs = _RUN_INPUT.get(_SAME_AS.get(program, program))
    words = stage.words[1:]
    return runs is not None and any(map(runs, (*words, *map(" ".join, pairwise(words)))))


def _starts_shell(words: Sequence[str]) -> bool:
    """Whether a wrapper starts a shell that reads its input: `sudo -s`, `su -`, `ssh HOST`."""
    words = list(dropwhile(ASSIGNMENT.fullmatch, words))
    name = base_name(words[0]) if words else ""
    if name == "su":
        return "-c" not in words
    if name not in WITH_ARGUMENT:
        return False
    names: list[str] = []
    rest = iter(words[1 : 1 + MAX_WORDS])
    for word in rest:
        if not word.startswith("-"):
            names.append(word)
        elif name != "ssh" and not names and _SHELL_OPTION.fullmatch(word):
            return True
        elif not word.startswith("--") and word[-1:] in WITH_ARGUMENT[name]:
            next(rest, None)
    return name == "ssh" and len(names) == 1


def _runs_computed(program: str, words: Sequence[str]) -> bool:
    """Whether a stage runs the text of a variable: as its program, or as the text for an interpreter."""
    if is_computed(program):
        return True
    if not is_interpreter(program):
        return False
    for word in _arguments(program, words):
        if COMPUTED in word:
            return True
        if not _is_before_script(word) and program not in _RUN_ALL:
            return False  # a script, and what follows are its arguments
    return False


def _script(program: str, words: Sequence[str]) -> str:
    """Return the file by a relative path that a stage runs; empty if there is none."""
    first = started_word(words)
    if not is_interpreter(program):
        return first if "/" in first and not first.startswith("/") else ""
    script = next((each for each in _arguments(program, words) if not each.startswith("-")), "")
    is_path = "/" in script or base_name(script).endswith((".sh", ".py", ".pl", ".rb", ".js"))
    return script if is_path and not script.startswith("/") and not any(map(str.isspace, script)) else ""


def _files_run(words: Sequence[str], program: str, *, is_installer: bool) -> set[str]:
    """Return the words that may name what a stage runs; what follows a script are only its arguments."""
    if is_interpreter(program):
        found, before = set(), ""
        for word in _arguments(program, words):
            found.add(word)
            if not (_is_before_script(word) or _LETTER.fullmatch(before)) and program not in _RUN_ALL:
                break
            before = word
        return found
    if is_computed(program):
        return {*words[1:]}
    # Behind a wrapper only the program itself counts: `sudo mv ./x /opt` runs nothing.
    return {*words} if is_installer or program == "chmod" else {started_word(words)}


def _is_before_script(word: str) -> bool:
    """Whether an argument of an interpreter is no script: an option, its input, or what xargs puts in."""
    return word.startswith(("-", "+", "{}")) or INPUT.fullmatch(word) is not None


def _arguments(program: str, words: Sequence[str]) -> Sequence[str]:
    """Return the words after an interpreter."""
    at = next((place for place, each in enumerate(words) if base_name(each) == program), 0)
    return words[at + 1 : at + 1 + MAX_WORDS]


def _is_run(program: str, words: Sequence[str]) -> bool:
    """Whether a stage starts a file by its path, or makes one executable."""
    return program == "chmod" or "/" in started_word(words)


def _shown(name: str) -> str:
    from hermes.agent.safety.visible_text import make_path_visible

    return make_path_visible(_COMPUTED.sub("*", name)[:60])
