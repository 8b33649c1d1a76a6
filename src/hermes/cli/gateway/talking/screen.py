"""Talking on a terminal: a prompt below, replies above it, and between them the answer that is being written."""

from __future__ import annotations

import asyncio

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.patch_stdout import patch_stdout

from hermes.cli.display.terminal import write_stderr, write_stdout
from hermes.cli.display.wrapping import wrap_text
from hermes.cli.gateway.talking.client import TalkClient
from hermes.platforms.local.client import LocalMessage, Said

MARK = "> "
LINES_BELOW = 4
"""Lines of the terminal that a preview leaves free."""


class _Screen:
    """Shows a conversation around a prompt."""

    def __init__(self) -> None:
        self.session: PromptSession[str] = PromptSession(message=self._message, refresh_interval=0)
        self._preview = ""
        self._preview_id = ""

    def received(self, message: LocalMessage) -> None:
        """Show a preview in place; a final reply or a notice goes above the prompt and stays."""
        if not message.final:
            self._show_preview(message.delivery_id, message.text)
            return
        if message.delivery_id == self._preview_id:
            self._show_preview("", "")
        self._write(message.text if message.type == "reply" else f"[{message.text}]")

    def refused(self, message_id: str, said: Said) -> None:
        """Show that a message was not accepted."""
        self._write(f"[Not accepted: {said.message or said.code}]")

    def connection_changed(self, *, is_connected: bool) -> None:
        """Show that the gateway is away, or back; previews of its turns are gone."""
        self._show_preview("", "")
        text = (
            "The gateway is back." if is_connected else "The gateway is away; your messages are sent when it is back."
        )
        write_stdout(f"[{text}]")

    def _write(self, text: str) -> None:
        """Write text above the prompt, in lines that fit."""
        write_stdout("\n".join(wrap_text(text, self.session.output.get_size().columns)))

    def _show_preview(self, delivery_id: str, text: str) -> None:
        self._preview_id, self._preview = delivery_id, text
        self.session.app.invalidate()

    def _message(self) -> FormattedText:
        if not self._preview:
            return FormattedText([("bold", MARK)])
        size = self.session.output.get_size()
        shown = wrap_text(self._preview, size.columns)
        last = "\n".join(shown[-max(1, size.rows - LINES_BELOW) :])
        return FormattedText([("", f"{last}\n"), ("bold", MARK)])


async def converse(client: TalkClient) -> None:
    """Talk until Ctrl-D."""
    screen = _Screen()
    connected = asyncio.Event()
    talking = asyncio.create_task(client.run(screen, connected.set))
    await asyncio.wait({talking, waiting := asyncio.create_task(connected.wait())}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if talking.done():
        return talking.result()
    write_stderr(f"Chat {client.chat_id}, user {client.user_id}. /help lists commands, Ctrl-D leaves.")
    try:
        with patch_stdout():
            await _read_messages(client, screen)
    finally:
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)


async def _read_messages(client: TalkClient, screen: _Screen) -> None:
    while True:
        try:
            text = await screen.session.prompt_async()
        except EOFError:
            return
        except KeyboardInterrupt:
            write_stdout("[Ctrl-D leaves; /stop ends a running turn.]")
            continue
        if text.strip():
            client.say(text)
