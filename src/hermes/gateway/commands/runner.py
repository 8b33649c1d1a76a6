"""Commands as the engine runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.errors import InvalidValue
from hermes.gateway.commands.context import CommandContext, CommandServices
from hermes.gateway.commands.dispatch import run_command
from hermes.gateway.commands.parsing import parse_command
from hermes.gateway.engine.parts import CommandReply, CommandTurn, LaneMessage

if TYPE_CHECKING:
    from hermes.gateway.engine.messages import Message
    from hermes.state.lanes.types import Lease


class CommandRunner:
    """Runs the commands of a node."""

    def __init__(self, services: CommandServices) -> None:
        self.services = services

    async def __call__(
        self, message: Message, session_key: str, lease: Lease, *, is_turn_running: bool
    ) -> CommandReply:
        """Run the command of a message and return its reply."""
        parsed = parse_command(f"/{message.command}")
        if parsed is None or message.row is None:
            raise InvalidValue(f"there is no command /{message.command}")
        result = await run_command(
            CommandContext(
                name=parsed.name,
                args=message.args.strip(),
                row=message.row,
                source=message.source,
                session_key=session_key,
                lease=lease,
                services=self.services,
                is_turn_running=is_turn_running,
            )
        )
        spec = result.turn
        turn = None if spec is None else CommandTurn(spec.text, spec.is_retry, spec.approval_id)
        others = tuple(
            LaneMessage(each.session_key, each.payload, each.kind, each.delivery_id, each.platform, each.account)
            for each in result.other
        )
        return CommandReply(result.text, turn, others)
