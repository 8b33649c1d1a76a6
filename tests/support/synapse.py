"""A real Matrix homeserver for tests: Synapse with SQLite, one for each process that runs tests."""

from __future__ import annotations

import atexit
import functools
import hashlib
import hmac
import http.client
import itertools
import json
import secrets
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from tests.support import fetched
from tests.support.servers import skip_or_fail
from tests.support.waiting import wait_until

PIN = "matrix-synapse==1.163.2"
NAME = "localhost"
_SECRET = "a shared secret of the tests"
_START_S = 90.0
_AMPLE = {"per_second": 10000, "burst_count": 10000}
_numbers = itertools.count(1)


def find() -> Path:
    """Return the folder of Synapse's programs, installed if necessary; raise OSError if that is not possible."""
    return fetched.python_program("synapse", PIN)


@dataclass(frozen=True)
class Account:
    """A user with a token, who talks to the server without any code of the product."""

    server: Homeserver
    user_id: str
    token: str

    def call(self, method: str, path: str, body: object = None, **query: str) -> dict[str, Any]:
        """Send a request below `/_matrix/client/v3` and return the response; fail if it is no success."""
        status, found = self.server.request(method, f"/_matrix/client/v3{path}", body, self.token, **query)
        assert status == 200, f"{method} {path}: {status} {found}"
        return found

    def log_in_again(self) -> Account:
        """Return the same user with the token of a new device."""
        name = {"type": "m.id.user", "user": self.user_id}
        found = self.call("POST", "/login", {"type": "m.login.password", "identifier": name, "password": "password"})
        return Account(self.server, self.user_id, found["access_token"])

    def create_room(self, *invited: str, **more: Any) -> str:
        """Create a room and return its id."""
        return str(self.call("POST", "/createRoom", {"invite": list(invited), **more})["room_id"])

    def join(self, room_id: str) -> None:
        """Join a room."""
        self.call("POST", f"/rooms/{quote(room_id)}/join", {})

    def say(self, room_id: str, text: str, **more: Any) -> str:
        """Send a message and return its id."""
        return self.send(room_id, {"msgtype": "m.text", "body": text, **more})

    def send(self, room_id: str, content: dict[str, Any], kind: str = "m.room.message") -> str:
        """Send an event and return its id."""
        path = f"/rooms/{quote(room_id)}/send/{kind}/test-{secrets.token_hex(8)}"
        return str(self.call("PUT", path, content)["event_id"])

    def events(self, room_id: str, kind: str = "m.room.message") -> list[dict[str, Any]]:
        """The events of a room, the oldest first."""
        found = self.call("GET", f"/rooms/{quote(room_id)}/messages", dir="b", limit="500")["chunk"]
        return [each for each in found if each["type"] == kind][::-1]

    def texts_of(self, room_id: str, sender: str) -> list[str]:
        """The texts of a user's messages in a room, the oldest first."""
        return [
            str(each["content"].get("body"))
            for each in self.events(room_id)
            if each["sender"] == sender and each["content"]
        ]

    def upload(self, data: bytes, mime: str) -> str:
        """Store a file and return its address."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": mime}
        _, found = self.server.exchange("POST", "/_matrix/media/v3/upload", data, headers)
        return str(found["content_uri"])


class Homeserver:
    """A private server in its own directory."""

    def __init__(self, **settings: Any) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="hermes-synapse-"))
        self.port = _free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        _write_config(self.place, self.port, settings)
        self.start()

    def start(self) -> None:
        """Start it, and wait until it responds."""
        with open(self.place / "log", "ab") as log:
            self._process = subprocess.Popen(
                [str(find() / "python"), "-m", "synapse.app.homeserver", "-c", str(self.place / "config.yaml")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.place,
            )
        process = self._process
        wait_until(lambda: process.poll() is not None or self._is_up(), "Synapse to start", _START_S)
        if process.poll() is not None:
            raise OSError(f"Synapse does not start: {(self.place / 'log').read_text(errors='replace')[-500:]}")

    def stop(self) -> None:
        """Stop it; its data stays."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def remove(self) -> None:
        """Stop it and delete its data."""
        self.stop()
        shutil.rmtree(self.place, ignore_errors=True)

    def limit(self, user: Account, *, per_second: int, burst: int) -> None:
        """Let a user send only so many messages; the others have no limit."""
        path = f"/_synapse/admin/v1/users/{quote(user.user_id)}/override_ratelimit"
        limits = {"messages_per_second": per_second, "burst_count": burst}
        status, found = self.request("POST", path, limits, self.user("admin", is_admin=True).token)
        assert status == 200, found

    def user(self, name: str = "user", *, is_admin: bool = False) -> Account:
        """Register a user with a new name that begins like this."""
        name = f"{name}{next(_numbers)}-{secrets.token_hex(3)}"
        path = "/_synapse/admin/v1/register"
        nonce = self.request("GET", path)[1]["nonce"]
        kind = "admin" if is_admin else "notadmin"
        signed = b"\0".join(each.encode() for each in (nonce, name, "password", kind))
        body = {
            "nonce": nonce,
            "username": name,
            "password": "password",
            "admin": is_admin,
            "mac": hmac.new(_SECRET.encode(), signed, hashlib.sha1).hexdigest(),
        }
        status, found = self.request("POST", path, body)
        assert status == 200, found
        return Account(self, found["user_id"], found["access_token"])

    def request(
        self, method: str, path: str, body: object = None, token: str = "", **query: str
    ) -> tuple[int, dict[str, Any]]:
        """Send JSON and return the status and the JSON of the response."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        data = b"" if body is None else json.dumps(body).encode()
        return self.exchange(method, f"{path}?{urlencode(query)}" if query else path, data, headers)

    def exchange(self, method: str, path: str, data: bytes, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Send bytes and return the status and the JSON of the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"{}")
        finally:
            connection.close()

    def _is_up(self) -> bool:
        try:
            return self.request("GET", "/_matrix/client/versions")[0] == 200
        except (OSError, ValueError, http.client.HTTPException):
            return False


@functools.cache
def _shared() -> Homeserver | str:
    try:
        server = Homeserver()
    except OSError as error:
        return str(error)
    atexit.register(server.remove)
    return server


def homeserver() -> Homeserver:
    """Return the server of this process; without one, skip the test, or fail it where nothing may be missing."""
    found = _shared()
    if isinstance(found, str):
        skip_or_fail(f"there is no Synapse: {found}")
    return found


def _write_config(place: Path, port: int, settings: dict[str, Any]) -> None:
    """Write a configuration without limits of rates, which talks to no other server."""
    rates = {
        f"rc_{name}": _AMPLE for name in ("message", "registration", "admin_redaction", "joins_per_room", "presence")
    }
    config: dict[str, Any] = {
        "server_name": NAME,
        "pid_file": str(place / "pid"),
        "listeners": [
            {
                "port": port,
                "bind_addresses": ["127.0.0.1"],
                "type": "http",
                "tls": False,
                "resources": [{"names": ["client", "media"]}],
            }
        ],
        "database": {"name": "sqlite3", "args": {"database": str(place / "homeserver.db")}},
        "media_store_path": str(place / "media"),
        "signing_key_path": str(place / "signing.key"),
        "registration_shared_secret": _SECRET,
        "macaroon_secret_key": "tests",
        "form_secret": "tests",
        "report_stats": False,
        "trusted_key_servers": [],
        "suppress_key_server_warning": True,
        "federation_domain_whitelist": [],
        "rc_joins": {"local": _AMPLE, "remote": _AMPLE},
        "rc_invites": {"per_room": _AMPLE, "per_user": _AMPLE, "per_issuer": _AMPLE},
        "rc_room_creation": _AMPLE,
        "rc_login": {"address": _AMPLE, "account": _AMPLE, "failed_attempts": _AMPLE},
        **rates,
        **settings,
    }
    (place / "config.yaml").write_text(json.dumps(config))
    (place / "signing.key").write_text(
        f"ed25519 a_test {secrets.token_urlsafe(48)[:43].replace('-', 'A').replace('_', 'B')}\n"
    )


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
