"""`hermes config`."""

from __future__ import annotations

import json
import stat

import pytest
import yaml

from tests.cli.chat.terminal import ENTER, Terminal
from tests.cli.conftest import Hermes


def text_of(hermes: Hermes) -> str:
    return (hermes.home / "config.yaml").read_text()


def test_path_is_printed_also_if_there_is_no_file(hermes: Hermes) -> None:
    assert hermes("config", "path").stdout == f"{hermes.home}/config.yaml\n"
    assert not hermes.home.exists()


def test_value_is_set_and_read_and_comments_stay(hermes: Hermes) -> None:
    hermes.home.mkdir(mode=0o700)
    (hermes.home / "config.yaml").write_text("# mine\ndisplay:\n  notify: none  # quiet\n")
    assert hermes("config", "set", "display.notify", "bell").returncode == 0
    assert text_of(hermes) == "# mine\ndisplay:\n  notify: bell  # quiet\n"
    assert hermes("config", "get", "display.notify").stdout == "bell\n"
    assert hermes("config", "get").stdout == "display.notify: bell\n"
    assert hermes("config", "unset", "display.notify").returncode == 0
    assert hermes("config", "get", "display.notify").stdout == "none\n"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("agent.max_steps", "12", 12),
        ("model.default", "123", "123"),
        ("sessions.auto_prune", "true", True),
        ("tools.cli", "[recall, files]", ["recall", "files"]),
        ("model.prices.gpt-4.1.input", "0.5", 0.5),
        ("sessiondb.path", "${DIRECTORY:-here}/x.db", "${DIRECTORY:-here}/x.db"),
    ],
)
def test_values_get_the_type_of_their_setting(hermes: Hermes, name: str, value: str, expected: object) -> None:
    done = hermes("config", "set", name, value)
    assert done.returncode == 0, done.stderr
    found = yaml.safe_load(text_of(hermes))
    while isinstance(found, dict):
        (found,) = found.values()
    assert found == expected


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("display.notfy", "bell", "did you mean display.notify?"),
        ("display.notify", "loud", "expected one of none, bell, desktop"),
        ("agent.max_steps", "many", "expected a whole number of at least 1"),
        ("agent.max_steps", "0", "at least 1"),
        ("tools.cli", "[recall", "not valid YAML"),
        ("display", "x", ""),
    ],
)
def test_wrong_names_and_values_change_nothing(hermes: Hermes, name: str, value: str, said: str) -> None:
    hermes.home.mkdir(mode=0o700)
    (hermes.home / "config.yaml").write_text("timezone: UTC\n")
    done = hermes("config", "set", name, value)
    assert done.returncode == 2
    assert said in done.stderr
    assert text_of(hermes) == "timezone: UTC\n"


def test_secret_goes_to_env_and_is_never_shown(hermes: Hermes) -> None:
    with Terminal(hermes, "config", "set", "model.api_key") as terminal:
        terminal.until("model.api_key:").type(f"sk-secret{ENTER}")
        assert terminal.until_over() == 0
        assert "sk-secret" not in terminal.text
    assert text_of(hermes) == "model:\n  api_key: ${HERMES_MODEL_API_KEY}\n"
    assert (hermes.home / ".env").read_text() == "HERMES_MODEL_API_KEY='sk-secret'\n"
    assert stat.S_IMODE((hermes.home / ".env").stat().st_mode) == 0o600
    assert hermes("config", "get", "model.api_key").stdout == "(set)\n"
    assert "sk-secret" not in hermes("config", "get", "--json").stdout


def test_reference_to_a_variable_stays_a_reference(hermes: Hermes) -> None:
    assert hermes("config", "set", "model.api_key", "${MY_KEY}").returncode == 0
    assert text_of(hermes) == "model:\n  api_key: ${MY_KEY}\n"
    assert not (hermes.home / ".env").exists()


def test_json_has_names_values_and_whether_they_are_defaults(hermes: Hermes) -> None:
    hermes("config", "set", "backup.keep", "3")
    found = json.loads(hermes("config", "get", "backup", "--json").stdout)
    assert found == {
        "schema": "hermes.settings/1",
        "items": [
            {"name": "backup.directory", "value": None, "is_default": True},
            {"name": "backup.keep", "value": 3, "is_default": False},
        ],
        "total": 2,
        "next": None,
    }


def test_unknown_name_is_not_read(hermes: Hermes) -> None:
    done = hermes("config", "get", "modell.default")
    assert (done.returncode, "did you mean model.default?" in done.stderr) == (2, True)
    assert hermes("config", "get", "platforms").returncode == 3


def test_set_without_a_value_asks_only_for_secrets(hermes: Hermes) -> None:
    done = hermes("config", "set", "model.default")
    assert (done.returncode, "Pass it after the name" in done.stderr) == (2, True)
