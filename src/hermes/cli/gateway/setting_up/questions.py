"""What each platform needs: its secrets, its settings, and the request that checks them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret: the setting that refers to it, its variable in `.env`, and how it is asked for."""

    setting: str
    variable: str
    question: str
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Plain:
    """A setting that is no secret."""

    setting: str
    option: str
    question: str


@dataclass(frozen=True, slots=True)
class Request:
    """A request that only a valid token gets an answer to."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)


Answers = Mapping[str, str]
"""The values by setting, such as `token` and `extra.base_url`."""


@dataclass(frozen=True, slots=True)
class Questions:
    """The set-up of one platform."""

    section: str
    base_url: str
    where: str
    secrets: tuple[Secret, ...]
    request: Callable[[str, Answers], Request]
    describe: Callable[[Mapping[str, Any]], str]
    """Returns who the bot is, from the platform's answer; empty if the token is not valid."""
    plain: tuple[Plain, ...] = ()
    webhook: str = ""
    """The path that the gateway's HTTP server has to serve, unless `without_webhook` is set."""
    without_webhook: str = ""
    not_there: str = ""
    """What to do if the platform is not at the address; empty if that is how it refuses a token."""


def _telegram(base_url: str, answers: Answers) -> Request:
    return Request(f"{base_url}/bot{quote(answers['token'], safe=':')}/getMe")


def _telegram_name(data: Mapping[str, Any]) -> str:
    result = data.get("result")
    name = str(result.get("username") or "") if isinstance(result, dict) else ""
    return f"@{name} (https://t.me/{name})" if data.get("ok") and name else ""


def _slack_name(data: Mapping[str, Any]) -> str:
    return f"{data.get('user')} in {data.get('team')}" if data.get("ok") else ""


def _bearer(method: str, path: str) -> Callable[[str, Answers], Request]:
    def request(base_url: str, answers: Answers) -> Request:
        place = path.format(phone_number_id=quote(answers.get("extra.phone_number_id", ""), safe=""))
        return Request(f"{base_url}/{place}", method, {"Authorization": f"Bearer {answers['token']}"})

    return request


def _discord(base_url: str, answers: Answers) -> Request:
    return Request(f"{base_url}/users/@me", headers={"Authorization": f"Bot {answers['token']}"})


def _whatsapp_name(data: Mapping[str, Any]) -> str:
    return str(data.get("display_phone_number") or data.get("verified_name") or data.get("id") or "")


PLATFORMS: Mapping[str, Questions] = {
    "telegram": Questions(
        "telegram",
        "https://api.telegram.org",
        "Write to @BotFather on Telegram: /newbot gives you a token.",
        (Secret("token", "TELEGRAM_BOT_TOKEN", "Token of the bot"),),
        _telegram,
        _telegram_name,
    ),
    "discord": Questions(
        "discord",
        "https://discord.com/api/v10",
        "Discord's developer portal, page Bot of your application: turn on the message content intent, copy the token.",
        (Secret("token", "DISCORD_BOT_TOKEN", "Token of the bot"),),
        _discord,
        lambda data: str(data.get("username") or ""),
    ),
    "slack": Questions(
        "slack",
        "https://slack.com/api",
        "On api.slack.com/apps, install the app (xoxb- token) and create a token for socket mode (xapp-).",
        (
            Secret("token", "SLACK_BOT_TOKEN", "Token of the bot (xoxb-...)"),
            Secret("extra.app_token", "SLACK_APP_TOKEN", "Token of socket mode (xapp-...)", is_optional=True),
            Secret("extra.signing_secret", "SLACK_SIGNING_SECRET", "Signing secret, for webhooks", is_optional=True),
        ),
        _bearer("POST", "auth.test"),
        _slack_name,
        webhook="/webhooks/slack",
        without_webhook="extra.app_token",
    ),
    "whatsapp": Questions(
        "whatsapp_cloud",
        "https://graph.facebook.com/v23.0",
        "Meta's developer page of your app has the number's id, an access token and the app's secret.",
        (
            Secret("token", "WHATSAPP_TOKEN", "Access token"),
            Secret("extra.app_secret", "WHATSAPP_APP_SECRET", "Secret of the app, which signs webhooks"),
            Secret("extra.verify_token", "WHATSAPP_VERIFY_TOKEN", "Verify token that you choose for the webhook"),
        ),
        _bearer("GET", "{phone_number_id}"),
        _whatsapp_name,
        (Plain("extra.phone_number_id", "phone-number-id", "Id of the phone number"),),
        webhook="/webhooks/whatsapp",
    ),
    "matrix": Questions(
        "matrix",
        "",
        "Create an account for the bot on your homeserver, and log in once to get an access token.",
        (Secret("token", "MATRIX_ACCESS_TOKEN", "Access token"),),
        _bearer("GET", "_matrix/client/v3/account/whoami"),
        lambda data: str(data.get("user_id") or ""),
        (Plain("extra.base_url", "base-url", "Address of the homeserver, such as https://matrix.example.org"),),
        not_there="https://example.org/.well-known/matrix/client names the homeserver of ids like @bot:example.org",
    ),
}
