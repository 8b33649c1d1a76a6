"""A server that plays Meta: the Graph API of one phone number, files, and signed notifications to a webhook."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NUMBER, OTHER_NUMBER, OWN = "1004711", "1004712", "15550001111"
TOKEN, SECRET, VERIFY = "EAAtoken-of-the-system-user", "secret-of-the-app", "word-that-was-invented"
USER = "491701234567"
VERSION = "/v23.0"

Answer = tuple[int, Mapping[str, Any]]


def refusal(code: int, status: int = 400, message: str = "no") -> Answer:
    """The response of Meta to a message that it does not take."""
    return status, {"error": {"code": code, "message": message, "type": "OAuthException"}}


class Meta:
    """Everything that a test controls and looks at."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        """The messages that it has accepted, with their ids."""
        self.marked_read: list[dict[str, Any]] = []
        self.uploads: list[bytes] = []
        self.keys: list[str | None] = []
        """The header Authorization of every request, by path."""
        self.paths: list[str] = []
        self.answers: deque[Answer | str] = deque()
        """What the next messages get: a response, or `lost`, which stores the message and says nothing."""
        self.files: dict[str, tuple[str, bytes]] = {}
        """The address and the content of files, by id."""
        self.webhook = ""
        self.reports: dict[str, Any] | None = None
        """What is reported about every message that is accepted, such as `{"status": "sent"}`."""
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        self.root = f"http://127.0.0.1:{self._server.server_port}"
        self.base_url = f"{self.root}{VERSION}"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def texts(self) -> list[str]:
        """The texts that users see."""
        return [each["text"]["body"] for each in self.sent if each["type"] == "text"]

    # --- to the webhook -----------------------------------------------------------------------------------------------

    def say(self, text: str, message_id: str = "wamid.1", sender: str = USER, **more: Any) -> int:
        """Let a user write a text; return the status of the webhook."""
        return self.notify({"messages": [message(text, message_id, sender, **more)]})

    def notify(self, value: Mapping[str, Any], number: str = NUMBER, field: str = "messages") -> int:
        """Send a notification about a phone number, signed; return the status, 0 without a response."""
        return self.post(json.dumps(notification(value, number, field)).encode())

    def report(self, sent: Mapping[str, Any], **status: Any) -> int:
        """Report what became of a message that was accepted."""
        about = {"id": sent["id"], "recipient_id": sent["to"], "timestamp": "1700000000", **status}
        if mark := sent.get("biz_opaque_callback_data"):
            about["biz_opaque_callback_data"] = mark
        return self.notify({"statuses": [about]})

    def post(self, body: bytes, signature: str | None = None) -> int:
        """Send a body to the webhook, signed unless a signature is given; return the status, 0 without a response."""
        headers = {"Content-Type": "application/json", "X-Hub-Signature-256": signature or sign(body)}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.webhook, body, headers), timeout=20) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code
        except (OSError, http.client.HTTPException):
            return 0

    # --- from the gateway ---------------------------------------------------------------------------------------------

    def handle(self, method: str, path: str, body: bytes) -> Answer | str | bytes:
        """Return the response to a request."""
        with self._lock:
            if path.startswith("/files/"):
                return next((data for url, data in self.files.values() if url.endswith(path)), b"")
            name = path.removeprefix(f"{VERSION}/")
            if method == "GET" and name == NUMBER:
                return 200, {"id": NUMBER, "display_phone_number": "+1 555-000-1111", "verified_name": "Oak"}
            if method == "GET" and name in self.files:
                return 200, {"url": self.files[name][0], "mime_type": "image/png"}
            if (method, name) == ("POST", f"{NUMBER}/media"):
                self.uploads.append(body)
                return 200, {"id": f"media{len(self.uploads)}"}
            if (method, name) == ("POST", f"{NUMBER}/messages"):
                return self._accept(json.loads(body))
            return refusal(100, 404)

    def _accept(self, body: dict[str, Any]) -> Answer | str:
        if body.get("status") == "read":
            self.marked_read.append(body)
            return 200, {"success": True}
        answer = self.answers.popleft() if self.answers else ""
        if isinstance(answer, tuple):
            return answer
        sent = {**body, "id": f"wamid.out{len(self.sent) + 1}"}
        self.sent.append(sent)
        if self.reports is not None:
            threading.Thread(target=self.report, args=(sent,), kwargs=self.reports, daemon=True).start()
        return answer or (200, {"messages": [{"id": sent["id"]}], "contacts": [{"wa_id": body["to"]}]})


def message(text: str, message_id: str, sender: str = USER, **more: Any) -> dict[str, Any]:
    """A text message in a notification."""
    about = {"from": sender, "id": message_id, "timestamp": "1700000000", "type": "text", "text": {"body": text}}
    return {**about, **more}


def notification(value: Mapping[str, Any], number: str = NUMBER, field: str = "messages") -> dict[str, Any]:
    """A notification with one change."""
    about = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": OWN, "phone_number_id": number},
        "contacts": [{"wa_id": USER, "profile": {"name": "Alice"}}],
    }
    entry = {"id": "1", "changes": [{"field": field, "value": {**about, **value}}]}
    return {"object": "whatsapp_business_account", "entry": [entry]}


def sign(body: bytes, secret: str = SECRET) -> str:
    """The signature of a body."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _handler(meta: Meta) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._respond()

        def do_POST(self) -> None:
            self._respond()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            meta.paths.append(self.path)
            meta.keys.append(self.headers.get("Authorization"))
            answer = meta.handle(self.command, self.path, body)
            if answer == "lost":
                self.close_connection = True
                return
            status, data = answer if isinstance(answer, tuple) else (200, answer)
            content = data if isinstance(data, bytes) else json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler
