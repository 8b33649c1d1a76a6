"""`hermes gateway service`: prints files that run the gateway as a service."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import click

from hermes.cli.display.terminal import write_stderr, write_stdout
from hermes.cli.store import read_config
from hermes.config import Config
from hermes.errors import InvalidValue
from hermes.home import get_hermes_home

EXTRAS = {"whatsapp_cloud": "whatsapp", "whatsapp": "whatsapp", "postgresql": "postgres", "mysql": "mysql"} | {
    name: name for name in ("telegram", "discord", "slack", "matrix")
}
"""The extras of the package, by the platforms and databases that need them."""
STOP_S = 240
"""Longer than the time for draining, so that turns can end."""

UNIT = """[Unit]
Description=Hermes gateway

[Service]
Type=exec
Environment={home}
ExecStart={program} gateway run
ExecReload=/bin/kill -USR1 $MAINPID
Restart=on-failure
RestartSec=5
TimeoutStopSec={stop_s}
KillMode=mixed
UMask=0077
NoNewPrivileges=true

[Install]
WantedBy=default.target
"""
COMPOSE = """services:
  hermes:
    image: python:3.12-slim
    command:
      - sh
      - -c
      - >-
        python -m venv /tmp/hermes && /tmp/hermes/bin/pip install --quiet '{package}'
        && exec /tmp/hermes/bin/hermes gateway run
    environment:
      HERMES_HOME: /home/hermes
      HOME: /tmp
    network_mode: host
    volumes:
      - {home}
    user: "{user}"
    restart: unless-stopped
    stop_grace_period: {stop_s}s
    init: true
    security_opt:
      - no-new-privileges:true
"""


@click.command()
@click.option("--systemd", "kind", flag_value="systemd", default=True, help="Print a unit of systemd (the default).")
@click.option("--compose", "kind", flag_value="compose", help="Print a compose file.")
def service(kind: str) -> None:
    """Print a file that runs the gateway as a service.

    A systemd unit goes to `~/.config/systemd/user/hermes-gateway.service`. Neither file contains a secret: the gateway
    reads them from `.env` in its home. A compose file installs what the enabled platforms need.
    """
    home = get_hermes_home().absolute()
    if not str(home).isprintable():
        raise InvalidValue("the path of the Hermes home has unusual characters", hint="use another home")
    if kind == "compose":
        place = json.dumps(f"{home}:/home/hermes").replace("$", "$$")  # `$` begins a variable there
        user, package = f"{os.getuid()}:{os.getgid()}", _package(read_config(as_json=False))
        write_stdout(COMPOSE.format(home=place, user=user, package=package, stop_s=STOP_S).rstrip("\n"))
        write_stderr("Save it as compose.yaml; `docker compose up -d` starts it.")
        return
    program = shutil.which("hermes") or str(Path(sys.argv[0]).absolute())
    text = UNIT.format(
        home=_unit_word(f"HERMES_HOME={home}"), program=_unit_word(program).replace("$", "$$"), stop_s=STOP_S
    )
    write_stdout(text.rstrip("\n"))
    write_stderr(
        "Save it as ~/.config/systemd/user/hermes-gateway.service;"
        " `systemctl --user enable --now hermes-gateway` starts it,"
        " and `loginctl enable-linger` lets it run while you are logged out."
    )


def _package(config: Config) -> str:
    """Return the package with the extras that the configuration needs."""
    enabled = [name for name, settings in config.platforms.items() if settings.enabled]
    found = {EXTRAS[name] for name in (*enabled, config.sessiondb.provider) if name in EXTRAS}
    if config.api_server.enabled:
        found.add("http")
    return f"hermes-sessions[{','.join(sorted(found))}]" if found else "hermes-sessions"


def _unit_word(text: str) -> str:
    """Return a word as systemd reads it: `%` has a meaning there."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if escaped != text or any(each.isspace() for each in text) else text
