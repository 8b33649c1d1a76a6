"""`hermes gateway setup` and `hermes gateway service`."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermes.cli.gateway.setting_up.questions import PLATFORMS
from hermes.platforms.discord import settings as discord
from hermes.platforms.slack import settings as slack
from hermes.platforms.telegram import settings as telegram
from hermes.platforms.whatsapp import settings as whatsapp
from tests.cli.conftest import Hermes

TOKEN = "123:secret-token"


def run(hermes: Hermes, *args: str, text: str) -> subprocess.CompletedProcess[str]:
    """Run the set-up with the secrets on stdin."""
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        process = hermes.start("gateway", "setup", *args, stdin=file, stdout=subprocess.PIPE)
        out, errors = process.communicate(timeout=60)
    return subprocess.CompletedProcess(args, process.returncode, out.decode(), errors.decode())


NAMES: dict[str, dict[str, Any]] = {
    f"/bot{TOKEN}/getMe": {"ok": True, "result": {"username": "my_bot"}},
    "/users/@me": {"username": "my_bot"},
    "/auth.test": {"ok": True, "user": "my_bot", "team": "Acme"},
    "/5551": {"display_phone_number": "+49 1"},
    "/_matrix/client/v3/account/whoami": {"user_id": "@my_bot:example.org"},
}


@contextmanager
def platform_server() -> Iterator[tuple[str, list[str]]]:
    """A server that knows one token, and the requests that it got."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(f"{self.command} {self.path}")
            if self.path.startswith(("/nothing", "/page")):
                self.send_response(404 if self.path.startswith("/nothing") else 200)
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"<h1>")
                return
            known = self.path in NAMES and TOKEN in self.path + str(self.headers.get("Authorization"))
            body = json.dumps(NAMES[self.path] if known else {"ok": False}).encode()
            self.send_response(302 if self.path.endswith("/moved") else 200 if known else 401)
            self.send_header("Location", "/bot123:secret-token/getMe")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("platform", "section", "lines", "more", "variable"),
    [
        ("telegram", "telegram", [TOKEN], [], "TELEGRAM_BOT_TOKEN"),
        ("discord", "discord", [TOKEN], [], "DISCORD_BOT_TOKEN"),
        ("slack", "slack", [TOKEN, "xapp-1", ""], [], "SLACK_BOT_TOKEN"),
        ("whatsapp", "whatsapp_cloud", [TOKEN, "s", "v"], ["--phone-number-id", "5551"], "WHATSAPP_TOKEN"),
        ("matrix", "matrix", [TOKEN], [], "MATRIX_ACCESS_TOKEN"),
    ],
)
def test_a_checked_token_goes_to_env_and_config_refers_to_it(
    hermes: Hermes, platform: str, section: str, lines: list[str], more: list[str], variable: str
) -> None:
    hermes.home.mkdir(exist_ok=True)
    (hermes.home / "config.yaml").write_text("# my settings\ntimezone: UTC  # here\n")
    (hermes.home / ".env").write_text("# keys\nOTHER=1\n")
    with platform_server() as (url, _):
        done = run(
            hermes,
            *(platform, "--token-stdin", "--base-url", url, "--allow", "42", *more),
            text="\n".join(lines) + "\n",
        )
    assert done.returncode == 0, done.stderr
    assert "my_bot" in done.stdout or "+49 1" in done.stdout
    text, env = (hermes.home / "config.yaml").read_text(), (hermes.home / ".env").read_text()
    settings = yaml.safe_load(text)["platforms"][section]
    assert (settings["enabled"], settings["token"]) == (True, f"${{{variable}}}")
    assert settings["allowed_users"] == ["42"]
    assert "# my settings" in text
    assert "timezone: UTC  # here" in text
    assert "# keys\nOTHER=1\n" in env
    assert TOKEN in env
    assert TOKEN not in text + done.stdout + done.stderr
    assert {(hermes.home / name).stat().st_mode & 0o777 for name in ("config.yaml", ".env")} == {0o600}


def test_a_token_that_the_platform_refuses_is_not_stored(hermes: Hermes) -> None:
    with platform_server() as (url, requests):
        done = run(hermes, "telegram", "--token-stdin", "--base-url", url, text="999:wrong\n")
        assert len(requests) == 1
        moved = run(hermes, "telegram", "--token-stdin", "--base-url", f"{url}/moved", text="x\n")
    assert done.returncode != 0
    assert "does not accept this token" in done.stderr
    assert "999:wrong" not in done.stderr + done.stdout
    assert moved.returncode != 0
    assert not (hermes.home / ".env").exists()
    assert not (hermes.home / "config.yaml").exists()


@pytest.mark.parametrize("path", ["/nothing", "/page"])
def test_an_address_that_is_no_homeserver_is_named(hermes: Hermes, path: str) -> None:
    with platform_server() as (url, _):
        done = run(hermes, "matrix", "--token-stdin", "--base-url", f"{url}{path}", text=f"{TOKEN}\n")
    assert done.returncode != 0
    assert "not the address of a server of matrix" in done.stderr
    assert ".well-known/matrix/client" in done.stderr
    assert not (hermes.home / ".env").exists()


@pytest.mark.parametrize("address", ["http://example.org", "ftp://127.0.0.1", "https://a:b@example.org", "x"])
def test_a_token_is_sent_only_over_https(hermes: Hermes, address: str) -> None:
    done = run(hermes, "matrix", "--token-stdin", "--base-url", address, text=f"{TOKEN}\n")
    assert done.returncode != 0
    assert not (hermes.home / ".env").exists()


@pytest.mark.parametrize("line", ["", "two words", "a\x1b[31m", "x" * 9000])
def test_what_cannot_be_a_token_is_refused_before_it_is_sent(hermes: Hermes, line: str) -> None:
    with platform_server() as (url, requests):
        done = run(hermes, "telegram", "--token-stdin", "--base-url", url, text=f"{line}\n")
        assert requests == []
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_the_files_of_a_service_name_the_home_and_no_secret(hermes: Hermes) -> None:
    unit = hermes("gateway", "service").stdout
    assert f"HERMES_HOME={hermes.home}" in unit
    assert "gateway run" in unit
    compose = yaml.safe_load(hermes("gateway", "service", "--compose").stdout)["services"]["hermes"]
    assert compose["volumes"] == [f"{hermes.home}:/home/hermes"]
    assert compose["command"][-1].endswith("exec /tmp/hermes/bin/hermes gateway run")


@pytest.mark.parametrize(
    ("settings", "package"),
    [
        ("", "hermes-sessions"),
        ("platforms: {telegram: {enabled: true, token: x}, slack: {enabled: false}}", "hermes-sessions[telegram]"),
        (
            "platforms: {whatsapp_cloud: {enabled: true}, matrix: {enabled: true}}\napi_server: {enabled: true}",
            "hermes-sessions[http,matrix,whatsapp]",
        ),
        ("sessiondb: {provider: postgresql, dsn: 'postgresql://db/x'}", "hermes-sessions[postgres]"),
    ],
)
def test_a_container_installs_what_the_configuration_needs(hermes: Hermes, settings: str, package: str) -> None:
    hermes.home.mkdir()
    (hermes.home / "config.yaml").write_text(settings)
    compose = yaml.safe_load(hermes("gateway", "service", "--compose").stdout)["services"]["hermes"]
    assert f" '{package}' " in compose["command"][-1]
    declared = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    extras = package.partition("[")[2].strip("]").split(",") if "[" in package else []
    assert set(extras) <= set(declared["optional-dependencies"])


@pytest.mark.parametrize(
    ("platform", "lines", "needs_server"),
    [("slack", [TOKEN, "xapp-1", ""], False), ("slack", [TOKEN, "", "s"], True), ("telegram", [TOKEN], False)],
)
def test_the_set_up_says_whether_the_http_server_is_needed(
    hermes: Hermes, platform: str, lines: list[str], needs_server: bool
) -> None:
    with platform_server() as (url, _):
        done = run(hermes, platform, "--token-stdin", "--base-url", url, text="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    assert ("api_server.enabled true" in done.stderr) is needs_server


def test_a_token_is_checked_where_the_adapter_uses_it() -> None:
    addresses = {
        "telegram": telegram.API,
        "discord": discord.BASE_URL,
        "slack": slack.BASE_URL,
        "whatsapp": whatsapp.GRAPH_URL,
    }
    assert {name: PLATFORMS[name].base_url for name in addresses} == addresses
