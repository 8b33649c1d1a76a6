"""`hermes setup`."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest
import yaml

from hermes.cli.setup.providers import OFFERS, find_offer
from tests.cli.chat.terminal import CTRL_C, CTRL_D, ENTER, Terminal
from tests.cli.conftest import COMMAND, Hermes
from tests.support.modelserver import Fail, ModelServer, Say

KEY = "sk-test-0123456789abcdef"


def run(hermes: Hermes, *args: str, text: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "setup", *args],
        input=text,
        env=hermes.environment(**variables),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


def settings(hermes: Hermes) -> dict[str, object]:
    return dict(yaml.safe_load((hermes.home / "config.yaml").read_text())["model"])


class TestAsking:
    def test_offers_are_broken_between_words(self, hermes: Hermes) -> None:
        with Terminal(hermes, "setup", columns=40) as terminal:
            terminal.until("Number [1]:")
            start = next(place for place, line in enumerate(terminal.lines) if line.startswith("  8  no model"))
            assert terminal.lines[start : start + 3] == [
                "  8  no model: the built-in offline",
                "  model, which only searches past",
                "  sessions",
            ]

    def test_new_user_is_led_to_a_model_that_answers(self, hermes: Hermes) -> None:
        with ModelServer(Say("OK"), Say("Hello, Ada."), models=("small", "large")) as server:
            with Terminal(hermes, "setup", columns=100) as terminal:
                terminal.until("Number [1]:").type(f"nine{ENTER}").until("Type a number from 1 to 8.")
                terminal.until_times("Number [1]:", 2).type(f"7{ENTER}")
                terminal.until("Its address").type(f"localhost:8000{ENTER}").until("write it as https://host/v1")
                terminal.until_times("Its address", 2).type(f"{server.base_url}{ENTER}")
                terminal.until("Key for it").type(f"{KEY}{ENTER}")
                terminal.until("  2  large").until("Model (number or name) [small]:").type(f"2{ENTER}")
                terminal.until(f"Hermes uses large at 127.0.0.1:{server.port}, which answered.")
                assert terminal.until_over() == 0
                assert KEY not in terminal.text
            assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
            with Terminal(hermes) as terminal:
                terminal.enter("I am Ada").until("◆ Hello, Ada.").until_prompt()
                assert terminal.status.startswith("large · ")
        assert settings(hermes) == {
            "provider": "custom",
            "default": "large",
            "base_url": server.base_url,
            "api_key": "${HERMES_MODEL_API_KEY}",
        }
        assert f"HERMES_MODEL_API_KEY='{KEY}'" in (hermes.home / ".env").read_text()
        modes = {stat.S_IMODE((hermes.home / name).stat().st_mode) for name in (".env", "config.yaml")}
        assert modes == {0o600}

    def test_names_of_models_do_nothing_to_the_terminal(self, hermes: Hermes) -> None:
        offered = ("\x1b]0;taken\x07small", "a\nb", "large")
        with ModelServer(Say("OK"), models=offered) as server, Terminal(hermes, "setup", columns=100) as terminal:
            terminal.until("Number [1]:").type(f"7{ENTER}")
            terminal.until("Its address").type(f"{server.base_url}{ENTER}")
            terminal.until("Key for it").type(ENTER)
            terminal.until("  1  large").until("Model (number or name) [large]:").type(ENTER)
            assert terminal.until_over() == 0
            assert b"taken" not in terminal.raw
        assert settings(hermes)["default"] == "large"

    @pytest.mark.parametrize(("key", "code"), [(CTRL_C, 130), (CTRL_D, 130)])
    def test_leaving_stores_nothing(self, hermes: Hermes, key: str, code: int) -> None:
        with Terminal(hermes, "setup", columns=100) as terminal:
            terminal.until("Number [1]:").type(f"1{ENTER}").until("Key for OpenAI").type(key)
            assert terminal.until_over() == code
            assert "Traceback" not in terminal.text
        assert not (hermes.home / "config.yaml").exists()
        assert not (hermes.home / ".env").exists()

    def test_no_model_is_a_choice_too(self, hermes: Hermes) -> None:
        with Terminal(hermes, "setup", columns=100, OPENAI_API_KEY="sk-unused") as terminal:
            terminal.until("Number [1]:").type(f"8{ENTER}")
            assert terminal.until_over() == 0
        assert hermes("-Q", "-q", "!say offline", OPENAI_API_KEY="sk-unused").stdout == "offline\n"


class TestScripts:
    def test_settings_are_replaced_and_comments_stay(self, hermes: Hermes) -> None:
        hermes.home.mkdir(mode=0o700)
        (hermes.home / "config.yaml").write_text(
            "# mine\nmodel:\n  provider: openai  # old\n  api_key: ${OPENAI_API_KEY}\ntimezone: UTC\n"
        )
        with ModelServer(Say("OK")) as server:
            done = run(hermes, "--provider", "ollama", "--base-url", server.base_url, OPENAI_API_KEY="sk-x")
            assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
        assert settings(hermes) == {
            "provider": "ollama",
            "default": "test-model",
            "base_url": server.base_url,
            "api_key": None,
        }
        text = (hermes.home / "config.yaml").read_text()
        assert text.startswith("# mine\nmodel:\n")
        assert text.endswith("timezone: UTC\n")

    def test_refused_key_is_not_stored_and_not_shown(self, hermes: Hermes) -> None:
        with ModelServer(Fail(401)) as server:
            address = ("--base-url", server.base_url, "--model", "m")
            done = run(hermes, "--provider", "custom", *address, "--key-stdin", text=f"{KEY}\n")
        assert done.returncode == 1
        assert "nothing was stored" in done.stderr
        assert KEY not in done.stdout + done.stderr
        assert not list(hermes.home.glob("*")) if hermes.home.exists() else True

    def test_endpoint_that_does_not_respond_is_named(self, hermes: Hermes) -> None:
        with ModelServer() as server:
            pass
        done = run(hermes, "--provider", "ollama", "--base-url", server.base_url)
        assert done.returncode == 1
        assert f"127.0.0.1:{server.port} cannot be reached" in done.stderr
        assert not (hermes.home / "config.yaml").exists()

    def test_untested_settings_are_stored_without_asking_the_endpoint(self, hermes: Hermes) -> None:
        with ModelServer() as server:
            address = ("--base-url", server.base_url, "--model", "m")
            done = run(hermes, "--provider", "custom", *address, "--no-test", "--key-stdin", text=KEY)
            assert (done.returncode, server.visits) == (0, []), done.stderr
        assert settings(hermes)["default"] == "m"

    @pytest.mark.parametrize(
        ("args", "text", "said"),
        [
            ((), "", "pass --provider"),
            (("--provider", "custom"), "", "needs --base-url"),
            (("--provider", "openai"), "", "set OPENAI_API_KEY"),
            (("--provider", "openai", "--key-stdin"), "two words", "cannot be a key"),
            (("--provider", "openai", "--key-stdin"), "x" * 9_000, "cannot be a key"),
            (("--provider", "unknown"), "", "unknown"),
        ],
    )
    def test_mistakes_are_usage_errors(self, hermes: Hermes, args: tuple[str, ...], text: str, said: str) -> None:
        done = run(hermes, *args, text=text)
        assert done.returncode == 2
        assert said in done.stderr
        assert not (hermes.home / "config.yaml").exists()

    def test_key_is_not_sent_over_http_to_a_public_address(self, hermes: Hermes) -> None:
        address = ("--base-url", "http://models.example.org/v1", "--model", "m")
        done = run(hermes, "--provider", "custom", *address, "--key-stdin", text=KEY)
        assert done.returncode == 1
        assert "over http" in done.stderr
        assert not (hermes.home / ".env").exists()

    def test_mistake_in_the_file_is_reported_before_any_question(self, hermes: Hermes, tmp_path: Path) -> None:
        hermes.home.mkdir(mode=0o700)
        (hermes.home / "config.yaml").write_text("model: [\n")
        done = run(hermes, "--provider", "ollama")
        assert done.returncode == 1
        assert "config.yaml" in done.stderr


def test_offers_are_found_by_number_and_name() -> None:
    assert find_offer("1") is OFFERS[0]
    assert find_offer(" Ollama ") is next(each for each in OFFERS if each.provider == "ollama")
    assert [find_offer(each) for each in ("0", "9", "", "²", "99999999999")] == [None] * 5
