"""Files and variables in which a command stores what it downloads or decodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hermes.agent.safety.scanning.programs import (
    MAX_WORDS,
    base_name,
    is_computed,
    is_decoder,
    is_downloader,
    is_reader,
    program_of,
    programs_in,
)
from hermes.agent.safety.scanning.shell_text import ENDS, Stage, read_shell_text

_COPIERS = frozenset({"tee", "sponge", "dd"})
_MOVERS = frozenset({"mv", "cp", "install", "ln"})
_UNPACKERS = frozenset({"tar", "bsdtar", "gtar", "cpio", "unzip", "7z", "7za", "unar"})
INPUT = re.compile(r"/dev/(?:stdin|fd/\d+)|/proc/self/fd/\d+")
"""Names of what is piped into a program: a link to it, or a copy of it, is as good as a download."""
_PIPE_MAKERS = frozenset({"mkfifo", "mknod"})
_HELD = re.compile(r"[A-Za-z_]\w*\+?=.*\0.*", re.DOTALL)
_READ_INTO = frozenset({"read", "mapfile", "readarray"})
_MAX_DEPTH = 2
"""How deep substitutions in substitutions are looked into."""
_ENDS = [[each] for each in sorted(ENDS)]
_ARGUMENTS = (*map(str, range(1, 10)), "@", "*")
"""The variables that `set` gives values to."""
_OUTPUT_OPTION = re.compile(r"(?:--output|--output-document|--out)(?:=(.+))?|-\w{0,8}[oO](.*)", re.DOTALL)
_PLACE = re.compile(r"[^/]*[/:].*[^/]", re.DOTALL)
"""A word that may be an address, or a file on another machine."""


class Downloads:
    """What the stages of one text have stored so far."""

    def __init__(self, stages: Sequence[Stage], variables: Mapping[str, str]) -> None:
        self.variables = dict(variables)
        """Variables with such a text, each with the program that returned it."""
        self.inherited = frozenset(variables)
        """Those that the command around this text has; only an interpreter runs them here."""
        self.has_unpacked = False
        """Whether files were unpacked or cloned whose names are not known."""
        self.is_open = False
        """Whether the shell reads such a text from a file descriptor."""
        self._files: set[str] = set()
        self._from_addresses: set[str] = set()
        """Names that an address gives, in an unknown directory."""
        self._is_download = self._has_source = False
        loops = [reader for each in stages if each.words[:1] == ["done"] and (reader := reader_of(each))]
        names = {name for each in stages for name in _read_into(each)} if loops else ()
        self._of_loops = dict.fromkeys(names, loops[0]) if loops else {}

    def is_stored(self, word: str) -> bool:
        """Whether a word names a file that holds a download."""
        path = _plain_path(word)
        return path in self._files or (bool(path) and path.rpartition("/")[2] in self._from_addresses)

    @property
    def is_empty(self) -> bool:
        """Whether no file is known."""
        return not (self._files or self._from_addresses)

    def note(self, stage: Stage, program: str) -> None:
        """Note what a stage stores."""
        self._note_variables(stage)
        if program in ("cd", "pushd"):
            self._files |= {each.rpartition("/")[2] for each in self._files}
        is_source = _is_source(stage, program)
        self._is_download = is_source or bool(stage.inner and reader_of(stage)) or (self._is_download and stage.is_fed)
        if is_source:
            self._from_addresses |= _named_by_addresses(stage)
        self._has_source |= self._is_download
        if is_source or (self._is_download and not stage.is_fed) or (self._has_source and stage.words[:1] in _ENDS):
            self._files |= _stored_by(stage)
        elif self._is_download:
            self._files |= _passed_on(stage)
        elif program in _PIPE_MAKERS:
            self._files |= _paths(stage.words[1:])
        behind = programs_in(stage.words, program)
        has_stored = any(self.is_stored(each) or INPUT.fullmatch(each) for each in stage.words)
        if has_stored and _MOVERS.intersection(behind):
            self._files |= _paths(stage.words[-1:])
        if _UNPACKERS.intersection(behind) and (has_stored or (self._is_download and stage.is_fed) or reader_of(stage)):
            self.has_unpacked = True
        if "git" in behind and "clone" in stage.words and any(map(_PLACE.fullmatch, stage.words)):
            self.has_unpacked = True
        if program == "exec" and reader_of(stage):
            self.is_open = True

    def _note_variables(self, stage: Stage) -> None:
        self.variables |= {name: self._of_loops[name] for name in _read_into(stage) if name in self._of_loops}
        if not stage.inner:
            return
        names = [each.partition("=")[0].removesuffix("+") for each in stage.words if _HELD.fullmatch(each)]
        names += _read_into(stage)
        if stage.words[:1] == ["for"]:
            names += stage.words[1:2]
        if stage.words[:1] == ["set"]:
            names += _ARGUMENTS
        if names and (reader := reader_of(stage)):
            self.variables |= dict.fromkeys(names, reader)
            self.inherited -= set(names)


def reader_of(stage: Stage, depth: int = _MAX_DEPTH) -> str:
    """Return the program in the substitutions of a stage that downloads or decodes text; empty if there is none."""
    return next(filter(None, (_reader_in(each, depth) for each in stage.inner)), "")


def _reader_in(text: str, depth: int) -> str:
    for stage in read_shell_text(text).stages:
        name = program_of(stage.words)
        for each in (name, *programs_in(stage.words, name)):
            if is_reader(each):
                return each
        if stage.inner and is_computed(name):
            return name
        if stage.inner and depth and (inner := reader_of(stage, depth - 1)):
            return inner
    return ""


def _read_into(stage: Stage) -> list[str]:
    """Return the variables that the shell reads its input into."""
    if not _READ_INTO.intersection(stage.words):
        return []
    return [each for each in stage.words if each.isidentifier() and each not in _READ_INTO]


def _is_source(stage: Stage, program: str) -> bool:
    is_named = any(is_downloader(base_name(each)) for each in stage.words[:MAX_WORDS]) or is_decoder(program)
    return is_named or (bool(stage.inner) and is_computed(program))


def _stored_by(stage: Stage) -> set[str]:
    """Return the files in which a stage stores its output."""
    return _paths((*stage.written, *_after_output_option(stage)))


def _after_output_option(stage: Stage) -> Iterator[str]:
    for place, word in enumerate(stage.words):
        option = _OUTPUT_OPTION.fullmatch(word)
        if option is not None:
            yield option[1] or option[2] or ""
            yield from stage.words[place + 1 : place + 2]


def _named_by_addresses(stage: Stage) -> set[str]:
    """Return the names of files that a download gets from its addresses."""
    addresses = (each for each in stage.words[1:] if not each.startswith("-") and _PLACE.fullmatch(each))
    return _paths(each.partition("?")[0].replace(":", "/").rpartition("/")[2] for each in addresses)


def _passed_on(stage: Stage) -> set[str]:
    """Return the files in which a later stage of a pipeline stores a download."""
    is_copy = any(base_name(each) in _COPIERS for each in stage.words[:MAX_WORDS])
    named = [each.removeprefix("of=") for each in stage.words if not each.startswith("-")] if is_copy else []
    return _stored_by(stage) | _paths(named)


def _paths(words: Iterable[str]) -> set[str]:
    return {_plain_path(each) for each in words if each.strip("-./")}


def _plain_path(word: str) -> str:
    return word.removeprefix("./")
