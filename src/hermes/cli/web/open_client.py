"""The web client of a command, with the settings and the keys of the Hermes home."""

from __future__ import annotations

from dataclasses import replace

from hermes.agent.safety.environment import holds_secret
from hermes.cli.store import read_config
from hermes.config import WebBackend, load_variables
from hermes.web.client import WebClient


def open_client(*, as_json: bool, backend: WebBackend | None) -> WebClient:
    """Return a client; `backend` overrides `web.backend`."""
    config = read_config(as_json=as_json).web
    variables = load_variables()
    secrets = [value for name, value in variables.items() if holds_secret(name, value)]
    return WebClient(replace(config, backend=backend) if backend else config, variables, secrets=secrets)
