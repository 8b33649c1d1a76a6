"""Makes the HTTP server of a gateway, and the adapter through which the API talks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from hermes.errors import ConfigError
from hermes.gateway.upkeep.metrics import PROMETHEUS, TEXT, CachedFigures, format_metrics, health_problem
from hermes.platforms.base.http import HttpRequest, HttpResponse
from hermes.platforms.http.errors import ApiError
from hermes.platforms.http.exchange import ApiAdapter
from hermes.platforms.http.principals import Principals
from hermes.platforms.http.server import MISSING, HttpServer, is_own_name

if TYPE_CHECKING:
    from hermes.chat_settings import ApiServerConfig
    from hermes.gateway.node.runner import GatewayRunner


def make(runner: GatewayRunner, settings: ApiServerConfig) -> tuple[HttpServer, ApiAdapter]:
    """Return the server, which is not started, and its adapter; raise `ConfigError` for wrong settings."""
    principals = Principals(settings.keys)
    server = HttpServer(
        settings.host, settings.port, max_body_bytes=settings.max_body_bytes, has_keys=bool(len(principals))
    )
    most = runner.config.gateway.limits.message_characters
    adapter = ApiAdapter(runner.db, lambda key, message_id: _text_so_far(runner, key, message_id), most)
    try:
        from hermes.platforms.http.app import make_app
    except ImportError as error:
        raise ConfigError(MISSING, hint="pip install 'hermes-sessions[http]'") from error
    server.app = make_app(adapter, principals, runner.parts.gateway_config.sessions_dir)
    return server, adapter


def serve_figures(
    server: HttpServer, keys: Mapping[str, str], live: Callable[[], Mapping[str, Any]], database: CachedFigures
) -> None:
    """Add `/healthz` for everybody, and `/metrics` for callers with a key; without keys, for programs of this machine.

    A page in a browser that was given the address of this machine under another name is none of these programs.
    """
    principals = Principals(keys)

    async def health(request: HttpRequest) -> HttpResponse:
        problem = health_problem(live(), await database.get())
        text = "ok" if problem is None else problem
        return HttpResponse(200 if problem is None else 503, f"{text}\n".encode(), {"Content-Type": TEXT})

    async def metrics(request: HttpRequest) -> HttpResponse:
        if len(principals):
            principals.require(request.headers.get("authorization", ""))
        elif not is_own_name(request.headers.get("host", "")):
            raise ApiError(403, "forbidden", "figures without a key are for this machine only")
        text = format_metrics(live(), await database.get())
        return HttpResponse(200, text.encode(), {"Content-Type": PROMETHEUS})

    handlers: dict[str, Callable[[HttpRequest], Awaitable[HttpResponse]]] = {"/healthz": health, "/metrics": metrics}
    for path, handler in handlers.items():
        server.add("GET", path, handler)


def _text_so_far(runner: GatewayRunner, key: str, message_id: str) -> str:
    """Return what the turn of a lane has written so far, if it answers a message and runs in this process."""
    actor = runner.dispatcher.actors.get(key)
    turn = None if actor is None else actor.turn
    if turn is None or turn.running is None or all(each.message_id != message_id for each in turn.messages):
        return ""
    return turn.running.text
