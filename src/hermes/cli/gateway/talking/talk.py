"""`hermes gateway talk`: a client for the gateway of this home."""

from __future__ import annotations

import asyncio
import getpass
import sys

import click

from hermes.home import get_hermes_home


@click.command(
    epilog="""\b
Examples:
  hermes gateway talk
  echo "What is new?" | hermes gateway talk --chat team --user ada"""
)
@click.option("--chat", "chat_id", metavar="ID", help="The chat to talk in. Default: the name of the user.")
@click.option("--user", "user_id", metavar="ID", help="The user who talks. Default: your name on this machine.")
def talk(chat_id: str | None, user_id: str | None) -> None:
    """Talk to the gateway of this home.

    Commands such as /new are sent as they are; Ctrl-D leaves. Without a terminal, each line of stdin is a message, and
    the next one is sent after its answer. The exit code is 3 if no gateway listens, and 1 if a message was refused.
    """
    from hermes.cli.gateway.talking.client import TalkClient

    user = user_id or _login_name()
    client = TalkClient(get_hermes_home(), chat_id or user, user)
    if sys.stdin.isatty() and sys.stdout.isatty():
        from hermes.cli.gateway.talking.screen import converse

        asyncio.run(converse(client))
        return
    from hermes.cli.gateway.talking.lines import send_lines

    exit_code = asyncio.run(send_lines(client))
    if exit_code:
        raise click.exceptions.Exit(exit_code)


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user has no name
        return "terminal"
