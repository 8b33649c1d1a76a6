"""`hermes gateway service`: prints files that run the gateway as a service."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import click

from hermes.cli.display.terminal import write_stderr, write_stdout
from hermes.errors import InvalidValue
from hermes.home import get_hermes_home

STOP_S = 240
"""Longer than the time for draining, so that turns can end."""

UNIT = """[Unit]
Description=Hermes gateway
After=network-online.target
Wants=network-online.target

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
PrivateTmp=true

[Install]
WantedBy=default.target
"""
COMPOSE = """services:
  hermes:
    image: python:3.12-slim
    command: ["sh", "-c", "pip install --quiet hermes-sessions && exec hermes gateway run"]
    environment:
      HERMES_HOME: /home/hermes
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
    reads them from `.env` in its home.
    """
    home = get_hermes_home().absolute()
    if not str(home).isprintable():
        raise InvalidValue("the path of the Hermes home has unusual characters", hint="use another home")
    if kind == "compose":
        place = json.dumps(f"{home}:/home/hermes").replace("$", "$$")  # `$` begins a variable there
        write_stdout(COMPOSE.format(home=place, user=f"{os.getuid()}:{os.getgid()}", stop_s=STOP_S).rstrip("\n"))
        write_stderr("Save it as compose.yaml; `docker compose up -d` starts it.")
        return
    program = shutil.which("hermes") or str(Path(sys.argv[0]).absolute())
    text = UNIT.format(
        home=_unit_word(f"HERMES_HOME={home}"), program=_unit_word(program).replace("$", "$$"), stop_s=STOP_S
    )
    write_stdout(text.rstrip("\n"))
    write_stderr(
        "Save it as ~/.config/systemd/user/hermes-gateway.service;"
        " `systemctl --user enable --now hermes-gateway` starts it."
    )


def _unit_word(text: str) -> str:
    """Return a word as systemd reads it: `%` has a meaning there."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if escaped != text or any(each.isspace() for each in text) else text
