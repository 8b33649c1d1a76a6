"""The environment of commands, and the redaction of secrets in errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.agent.safety.environment import command_environment, is_secret_name
from hermes.agent.safety.redaction import redact

SRC = Path(__file__).parents[3] / "src"


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "MYSQL_PASS", "KEY", "TOKENS", "PGPASSWORD",
     "SENTRY_DSN", "HTTP_AUTH", "GOOGLE_CREDENTIALS", "api_key", "SSH_KEY_PATH", "APIKEY"],
)  # fmt: skip
def test_secret_names_are_recognized(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["PATH", "KEYBOARD", "MONKEY", "LANG", "AUTHOR", "TOKENIZERS_PARALLELISM", "HOME"])
def test_ordinary_names_are_not_secret(name: str) -> None:
    assert not is_secret_name(name)


def test_relative_path_entries_are_dropped() -> None:
    assert command_environment({"PATH": "/usr/bin:.::node_modules/.bin:/bin"}) == {"PATH": "/usr/bin:/bin"}


def test_variables_are_passed_by_exact_name() -> None:
    environ = {"GH_TOKEN": "1", "GH_TOKEN_2": "2", "gh_token": "3"}
    assert command_environment(environ, ["GH_TOKEN", "MISSING"]) == {"GH_TOKEN": "1"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nothing here", "nothing here"),
        ("failed with correct-horse-battery", "failed with ***"),
        ("the pin is 1234", "the pin is 1234"),
        ("https://me:pw@example.org/x", "https://me:***@example.org/x"),
        ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer ***"),
        ("api_key=abcd1234&x=1", "api_key=***&x=1"),
        ('{"password": "hunter22"}', '{"password": "***"}'),
        ("sk-abcdefghijklmnopqrst", "***"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "***"),
        ("AKIAABCDEFGHIJKLMNOP", "***"),
    ],
)
def test_secrets_in_errors_are_hidden(text: str, shown: str) -> None:
    assert redact(text, {"MY_SECRET": "correct-horse-battery", "MY_PASS": "1234"}) == shown


def test_secret_that_contains_another_is_hidden_whole() -> None:
    assert redact("longsecretvalue", {"A_KEY": "longsecret", "B_KEY": "longsecretvalue"}) == "***"


HIDING = """
import os, subprocess
from hermes.agent.safety.environment import hide_own_secrets

def run(*command, env=None):
    return subprocess.run(command, env=env, capture_output=True, text=True).stdout

hide_own_secrets()
print(run("cat", f"/proc/{os.getpid()}/environ", env={}))
print(os.environ["OPENAI_API_KEY"], run("printenv", "OPENAI_API_KEY"))
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc here")
def test_secrets_of_this_process_are_not_shown_by_the_system() -> None:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SRC), "OPENAI_API_KEY": "correct-horse", "PLAIN": "shown"}
    environ["DATABASE_URL"] = "postgresql://ada:correct-horse@db.example.org/wiki"
    done = subprocess.run([sys.executable, "-c", HIDING], env=environ, capture_output=True, text=True, timeout=60)
    shown, own = done.stdout.strip().splitlines()
    assert "PLAIN=shown" in shown
    assert "correct-horse" not in shown
    assert own == "correct-horse correct-horse"
