"""`hermes gateway setup`: stores the token of a bot and turns its platform on."""

from __future__ import annotations

import sys

import click

from hermes.cli.config.settings_writer import set_secret, set_setting
from hermes.cli.display.terminal import printable, write_stderr, write_stdout
from hermes.cli.gateway.setting_up.check import ask_platform, checked_address, refused
from hermes.cli.gateway.setting_up.questions import PLATFORMS, Questions
from hermes.errors import InvalidValue
from hermes.home import get_hermes_home

_MAX_LINE = 8192


@click.command()
@click.argument("platform", type=click.Choice(list(PLATFORMS)))
@click.option("--token-stdin", "from_stdin", is_flag=True, help="Read the secrets from stdin, one per line, in order.")
@click.option("--base-url", metavar="URL", help="Another server of the platform, such as the homeserver of Matrix.")
@click.option("--phone-number-id", metavar="ID", help="The id of the number, for WhatsApp.")
@click.option("--allow", "allowed", metavar="USER", multiple=True, help="A user who may talk; can be repeated.")
def setup(
    platform: str, from_stdin: bool, base_url: str | None, phone_number_id: str | None, allowed: tuple[str, ...]
) -> None:
    """Store the token of a bot and turn its platform on.

    The token is asked for without showing it, checked with the platform, and stored in `.env`, which only you can read;
    `config.yaml` refers to it. Nothing is stored if the platform does not accept it.
    """
    questions = PLATFORMS[platform]
    if not from_stdin:
        write_stderr(questions.where)
    given = {"extra.base_url": base_url, "extra.phone_number_id": phone_number_id}
    answers: dict[str, str] = {}
    for plain in questions.plain:
        answers[plain.setting] = given.get(plain.setting) or _ask_plain(plain.question, f"--{plain.option}", from_stdin)
    if base_url:
        answers["extra.base_url"] = base_url
    if "extra.base_url" in answers:
        answers["extra.base_url"] = checked_address(answers["extra.base_url"])
    for secret in questions.secrets:
        value = _read_line() if from_stdin else _ask_secret(secret.question, secret.is_optional)
        if value:
            answers[secret.setting] = value
        elif not secret.is_optional:
            raise InvalidValue(f"{secret.question} is missing", hint="nothing was stored")
    address = answers.get("extra.base_url", questions.base_url)
    who = questions.describe(ask_platform(questions.request(address, answers), platform, not_there=questions.not_there))
    if not who:
        raise refused(platform)
    _store(questions, answers, allowed)
    write_stdout(f"{platform} is set up as {printable(who)}.")
    if questions.webhook and not answers.get(questions.without_webhook):
        write_stderr(
            f"Messages come to {questions.webhook} of the gateway's HTTP server:"
            " turn it on with `hermes config set api_server.enabled true`, and give it a public https address."
        )
    write_stderr(
        "Start it with `hermes gateway run`. "
        + ("" if allowed else "Users get a pairing code; `hermes gateway pairing approve CODE` lets one in.")
    )


def _store(questions: Questions, answers: dict[str, str], allowed: tuple[str, ...]) -> None:
    """Store the secrets first: a setting that refers to one is written when the secret is there."""
    home, prefix = get_hermes_home(), f"platforms.{questions.section}"
    variables = {each.setting: each.variable for each in questions.secrets}
    for setting, value in answers.items():
        if setting in variables:
            set_secret(home, variables[setting], value)
    for setting, value in answers.items():
        set_setting(home, f"{prefix}.{setting}", f"${{{variables[setting]}}}" if setting in variables else value)
    if allowed:
        set_setting(home, f"{prefix}.allowed_users", list(allowed))
    set_setting(home, f"{prefix}.enabled", True)


def _ask_plain(question: str, option: str, from_stdin: bool) -> str:
    if from_stdin:
        raise InvalidValue(f"{question} is missing", hint=f"give it with {option}")
    return str(click.prompt(question, err=True)).strip()


def _ask_secret(question: str, is_optional: bool) -> str:
    more = " (Enter: none)" if is_optional else ""
    value = click.prompt(f"{question}{more}", hide_input=True, err=True, default="", show_default=False)
    return _checked(str(value))


def _read_line() -> str:
    return _checked(sys.stdin.readline(_MAX_LINE + 1))


def _checked(value: str) -> str:
    value = value.strip()
    if len(value) >= _MAX_LINE or not value.isprintable() or (value and not value.isascii()) or " " in value:
        raise InvalidValue("this cannot be a token: it has blanks or unusual characters", hint="nothing was stored")
    return value
