"""`hermes gateway pairing`: lets unknown users in who have a pairing code."""

from __future__ import annotations

import time
from typing import Any

import click

from hermes.cli.display.terminal import printable, write_json, write_stderr, write_stdout
from hermes.cli.display.times import ago
from hermes.cli.lazy import show_help_without_command
from hermes.cli.options import AS_JSON
from hermes.cli.store import open_for_change, open_for_reading, read_config
from hermes.errors import NotFound
from hermes.gateway.people.access import parse_person
from hermes.gateway.people.pairing import PairedUser, PairingRequest, Pairings, approve_code, read_pairings, revoke_user

SCHEMA = "hermes.gateway.pairing/1"


@click.group(invoke_without_command=True)
@click.pass_context
def pairing(context: click.Context) -> None:
    """Let unknown users in who have a pairing code."""
    show_help_without_command(context)


@pairing.command("list")
@AS_JSON
def list_(as_json: bool) -> None:
    """List the users who wait for an approval, and those who were let in."""
    with open_for_reading(read_config(as_json=as_json)) as store:
        known = Pairings() if store is None else read_pairings(store)
    now = time.time()
    waiting = [each for each in known.requests if each.is_valid(now) and each.digest]
    if as_json:
        items = [
            *({"state": "waiting", **_user(each), "asked_at": each.asked_at} for each in waiting),
            *({"state": "paired", **_user(each), "approved_at": each.approved_at} for each in known.users),
        ]
        write_json({"schema": SCHEMA, "items": items, "total": len(items), "next": None})
        return
    for request in waiting:
        write_stdout(f"waiting  {_shown(request.platform, request.user, request.name)}, {ago(request.asked_at, now)}")
    for user in known.users:
        write_stdout(f"paired   {_shown(user.platform, user.user, user.name)}, {ago(user.approved_at, now)}")
    if not waiting and not known.users:
        write_stderr("No user waits or is paired.")


@pairing.command()
@click.argument("code", metavar="CODE")
def approve(code: str) -> None:
    """Let the user in who got this code.

    A code works once, for an hour. The exit code is 3 if it is unknown, used or too old.
    """
    with open_for_change(read_config(as_json=False)) as store:
        if store is None:
            raise NotFound("no user waits", hint="a gateway has not run in this home yet")
        user = approve_code(store, code, time.time())
    write_stdout(f"{_shown(user.platform, user.user, user.name)} may talk to the gateway now.")


@pairing.command()
@click.argument("user", metavar="PLATFORM:USER")
def revoke(user: str) -> None:
    """Let a paired user in no more.

    The exit code is 3 if the user was not paired. Users of `allowed_users` are removed in `config.yaml`.
    """
    person = parse_person(user, "the user")
    with open_for_change(read_config(as_json=False)) as store:
        if store is None:
            raise NotFound(f"the user {user} is not paired", hint="see `hermes gateway pairing list`")
        revoke_user(store, person)
    write_stdout(f"{printable(user)} may not talk to the gateway any more.")


def _user(known: PairingRequest | PairedUser) -> dict[str, Any]:
    return {"platform": known.platform, "user": known.user, "name": known.name}


def _shown(platform: str, user: str, name: str) -> str:
    return printable(f"{platform}:{user}" + (f" ({name})" if name else ""))
