"""A project for the transcripts about references: a repository, and a model that reviews it."""

from __future__ import annotations

import subprocess

from tests.support.behaviours import Say
from tests.support.modelserver import ModelServer
from tests.support.transcript_home import Home

_PARSER = "def find(words, word):\n    for each in words:\n        if each == word:\n            return each\n"


def project(home: Home) -> None:
    """A git repository with a change, an `.env` file, and a model that reviews it."""
    files = {"parser.py": _PARSER, "my notes.txt": "Search is slow.\n", ".env": "KEY=abc\n", ".gitignore": ".env\n"}
    for name, text in files.items():
        (home.work / name).write_text(text)
    variables = {f"GIT_{who}_{what}": "ada" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    variables |= {f"GIT_{who}_DATE": "2026-11-16T09:00:00Z" for who in ("AUTHOR", "COMMITTER")}
    for command in ("init -q -b main", "add .", "commit -q -m First"):
        subprocess.run(["git", *command.split()], cwd=home.work, env=home.environment() | variables, check=True)
    (home.work / "parser.py").write_text(f"{_PARSER}    raise LookupError(word)\n")
    (home.work / "large.log").write_text("one line of the log\n" * 100_000)
    script = (
        Say("If no word matches, the loop ends, and the function returns None."),
        Say("The change is right: callers get an error instead of None."),
        Say("I have seen the notes."),
    )
    server = home.resources.enter_context(ModelServer(*script))
    home.configure(f"model:\n  base_url: {server.base_url}\n  default: test-model\nagent:\n  auto_title: false\n")
