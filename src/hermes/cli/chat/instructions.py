"""What a new chat says about the files that instruct the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.agent.instructions import read_soul

if TYPE_CHECKING:
    from hermes.agent.open_session import OpenSession
    from hermes.cli.chat.terminal.screen import Screen


def show_instructions(session: OpenSession, screen: Screen) -> None:
    """Show which files instruct the agent in a new session, and which are not used."""
    found = (read_soul(session.agent.home), session.instructions)
    if files := [file for each in found for file in each.files]:
        screen.print_status(f"Instructions: {', '.join(files)}")
    for each in found:
        for remark in each.remarks:
            screen.print_text(f"Note: {remark}")
