"""A chat as a user sees it: a client of the local socket."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from pathlib import Path
from typing import Any

from hermes.platforms.local.socket_file import SOCKET_NAME, address_of
from tests.gateway.reliability.model import PATIENCE_S
from tests.support.waiting import LIMIT_S, wait_until


class Chat:
    """A client of the local socket, written without the product's own client; it confirms what it gets."""

    def __init__(self, home: Path, chat_id: str = "*") -> None:
        self.lines: list[dict[str, Any]] = []
        self._socket = socket.socket(socket.AF_UNIX)
        wait_until(lambda: self._connects(home), "a gateway to listen", PATIENCE_S)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        self._send({"type": "subscribe", "chat_id": chat_id})

    def say(self, text: str, chat_id: str = "c1", message_id: str | None = None, **more: str) -> dict[str, Any]:
        """Send a message, and return the line about its admission."""
        number = message_id or f"{chat_id}-{text}"
        known = len(self._admissions(number))
        line = {"type": "message", "message_id": number, "chat_id": chat_id, "user_id": f"user of {chat_id}"}
        self._send({**line, "text": text, **more})
        wait_until(lambda: len(self._admissions(number)) > known, f"{text!r} to be accepted", PATIENCE_S)
        return self._admissions(number)[-1]

    def ask(self, *words: str, chat_id: str = "c1") -> None:
        """Send messages that must be accepted; their ids are the words."""
        for word in words:
            admission = self.say(f"{word} please", chat_id, message_id=word)
            assert (admission["type"], admission.get("state")) == ("accepted", "accepted"), admission

    def replies(self, message_id: str) -> list[str]:
        """The texts of the final replies to a message, each delivery once."""
        found = {
            each["delivery_id"]: each["text"]
            for each in list(self.lines)
            if each["type"] == "reply" and each.get("final") and message_id in (each.get("answers") or ())
        }
        return list(found.values())

    def texts(self) -> str:
        """All that the client got, as one text."""
        return "\n".join(str(each.get("text")) for each in list(self.lines))

    def wait_for_replies(self, *message_ids: str) -> list[str]:
        """Wait until every message has a reply, and return the first ones."""
        for number in message_ids:
            wait_until(lambda number=number: bool(self.replies(number)), f"a reply to {number}", PATIENCE_S)  # type: ignore[misc]
        return [self.replies(each)[0] for each in message_ids]

    def close(self) -> None:
        """Disconnect."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(LIMIT_S)

    def _connects(self, home: Path) -> bool:
        with address_of(home / SOCKET_NAME) as address:
            return self._socket.connect_ex(address) == 0

    def _admissions(self, number: str) -> list[dict[str, Any]]:
        kinds = ("accepted", "refused")
        return [each for each in list(self.lines) if each["type"] in kinds and each["message_id"] == number]

    def _send(self, line: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(line).encode() + b"\n")

    def _read(self) -> None:
        with contextlib.suppress(OSError), self._socket.makefile("rb") as file:
            for text in file:
                line = json.loads(text)
                self.lines.append(line)
                if line.get("delivery_id") and line.get("final", True):
                    self._send({"type": "received", "delivery_id": line["delivery_id"]})
