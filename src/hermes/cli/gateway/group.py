"""The command group `hermes gateway`."""

from __future__ import annotations

import click

from hermes.cli.lazy import Lazy, LazyGroup, show_help_without_command

COMMANDS = {
    "run": Lazy("hermes.cli.gateway.run:run", "Run a gateway in the foreground."),
    "talk": Lazy("hermes.cli.gateway.talking.talk:talk", "Talk to the gateway of this home."),
    "status": Lazy("hermes.cli.gateway.status:status", "Show what waits, what runs, and which processes work on it."),
    "stop": Lazy("hermes.cli.gateway.control:stop", "Drain and stop the gateway of this home."),
    "restart": Lazy("hermes.cli.gateway.control:restart", "Drain and restart the gateway of this home."),
    "drain": Lazy("hermes.cli.gateway.control:drain", "Start no more turns; messages are still accepted."),
    "explain": Lazy("hermes.cli.gateway.explain:explain", "Show the life of one message."),
    "queue": Lazy("hermes.cli.gateway.group:queue", "Manage messages that could not be answered or delivered."),
    "approvals": Lazy(
        "hermes.cli.gateway.approvals:approvals", "List the requests of permission that wait, the oldest first."
    ),
    "approve": Lazy("hermes.cli.gateway.approvals:approve", "Allow what an agent asks for."),
    "setup": Lazy("hermes.cli.gateway.setting_up.setup:setup", "Store the token of a bot and turn its platform on."),
    "service": Lazy(
        "hermes.cli.gateway.setting_up.service:service", "Print a file that runs the gateway as a service."
    ),
    "pairing": Lazy("hermes.cli.gateway.pairing:pairing", "Let unknown users in who have a pairing code."),
    "deny": Lazy("hermes.cli.gateway.approvals:deny", "Refuse what an agent asks for."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, invoke_without_command=True)
@click.pass_context
def gateway(context: click.Context) -> None:
    """Serve chats with the agent, and look after the gateway."""
    show_help_without_command(context)


QUEUE_COMMANDS = {
    "list": Lazy("hermes.cli.gateway.queue:list_", "List the messages that wait for an operator, the oldest first."),
    "show": Lazy("hermes.cli.gateway.queue:show", "Show one of these messages with its text."),
    "retry": Lazy("hermes.cli.gateway.queue:retry", "Let a message be answered, or sent, once more."),
    "delete": Lazy("hermes.cli.gateway.queue:delete", "Give up a message: it is never answered, or never sent."),
    "expire": Lazy(
        "hermes.cli.gateway.queue:expire", "Give up all messages that have waited for an operator for too long."
    ),
}


@click.group(cls=LazyGroup, lazy=QUEUE_COMMANDS, invoke_without_command=True)
@click.pass_context
def queue(context: click.Context) -> None:
    """Manage messages that could not be answered or delivered.

    They wait here for an operator: in:NUMBER came from a chat, out:NUMBER was to be sent to one.
    """
    show_help_without_command(context)
