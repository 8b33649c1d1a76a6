"""`hermes setup`: asks for a provider, a key and a model, tries them, and stores them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import click

from hermes.agent.models.choice import PROVIDERS, choose_model
from hermes.cli.config.settings_writer import set_secret, set_setting
from hermes.cli.display.terminal import printable, terminal_width, write_stderr, write_stdout
from hermes.cli.display.wrapping import wrap_line
from hermes.cli.setup.providers import CUSTOM_VARIABLE, NAMES, OFFERS, Offer, find_offer
from hermes.cli.setup.trial import hint_of, list_names, try_model
from hermes.config import Config, ModelConfig, load_config, load_variables
from hermes.errors import ConfigError, InvalidValue, ModelError
from hermes.home import get_hermes_home

MAX_KEY = 8_192
MAX_LISTED = 12


@dataclass(frozen=True, slots=True)
class Answers:
    """What the user has chosen."""

    offer: Offer
    base_url: str | None = None
    key: str = ""
    model: str | None = None

    @property
    def settings(self) -> ModelConfig:
        """The settings with which the model is tried."""
        values = {"provider": self.offer.provider, "base_url": self.base_url, "default": self.model}
        return ModelConfig(api_key=self.key or None, **values)  # type: ignore[arg-type]


@click.command(
    epilog="""\b
Examples:
  hermes setup
  hermes setup --provider ollama
  printf '%s' "$KEY" | hermes setup --provider openai --model gpt-5-mini --key-stdin""",
)
@click.option("--provider", type=click.Choice(NAMES), help="The provider; without it you are asked for everything.")
@click.option("--base-url", metavar="URL", help="The address of the endpoint, if it is not the provider's usual one.")
@click.option("--model", "model_name", metavar="NAME", help="The model; none means the provider's usual one.")
@click.option("--key-stdin", "has_key_on_stdin", is_flag=True, help="Read the key from stdin.")
@click.option("--no-test", "is_untested", is_flag=True, help="Store the settings without trying the model.")
def setup(
    provider: str | None, base_url: str | None, model_name: str | None, has_key_on_stdin: bool, is_untested: bool
) -> None:
    """Choose a model, test it and store its key.

    The key is asked for without showing it, and stored in .env, which only you can read; config.yaml refers to it.
    Nothing is stored if the model does not answer a short message.
    """
    has_person = sys.stdin.isatty() and not has_key_on_stdin
    if provider is None and not has_person:
        raise click.UsageError("stdin is not a terminal: pass --provider")
    load_config()  # a mistake in it is reported before any question
    offer = _ask_offer() if provider is None else _offer_of(provider)
    if offer.provider == "offline":
        _store(Answers(offer))
        write_stdout("Hermes uses the offline model.")
        return
    answers = Answers(offer, base_url or _ask_address(offer, has_person=has_person), model=model_name)
    answers = replace(answers, key=_ask_key(offer, has_person=has_person, is_on_stdin=has_key_on_stdin))
    if answers.model is None:
        answers = replace(answers, model=_ask_model(answers, has_person=has_person and provider is None))
    choice = choose_model(answers.settings, {})
    if not is_untested:
        write_stderr(f"Asking {choice.name} at {choice.host} for a short answer ...")
        try:
            try_model(choice)
        except ModelError as error:
            raise type(error)(f"{error.message}; nothing was stored", hint=hint_of(error)) from error
    _store(answers)
    done = printable(f"Hermes uses {choice.name} at {choice.host}{'' if is_untested else ', which answered'}.")
    write_stdout("\n".join(wrap_line(done, terminal_width()) if sys.stdout.isatty() else [done]))
    write_stderr("Start a chat with `hermes`.")


def _offer_of(provider: str) -> Offer:
    return next(each for each in OFFERS if each.provider == provider)


def _ask_offer() -> Offer:
    """Ask for a provider until there is an answer."""
    write_stderr("Which model should Hermes use?")
    for number, each in enumerate(OFFERS, 1):
        write_stderr(f"  {number}  {each.label}")
    while True:
        found = find_offer(str(click.prompt("Number", default="1", err=True)))
        if found is not None:
            return found
        write_stderr(f"Type a number from 1 to {len(OFFERS)}.")


def _ask_address(offer: Offer, *, has_person: bool) -> str | None:
    if not offer.is_own_address:
        return None
    if not has_person:
        raise click.UsageError("--provider custom needs --base-url")
    while True:
        address = str(click.prompt("Its address, such as http://127.0.0.1:8000/v1", err=True)).strip()
        try:
            choose_model(Answers(offer, address, model="any").settings, {})
        except ConfigError as error:
            write_stderr(f"This address cannot be used: {error.hint}.")
            continue
        return address


def _ask_key(offer: Offer, *, has_person: bool, is_on_stdin: bool) -> str:
    """Return the key: from stdin, from the user, or the one that is set already; empty if none is needed."""
    if is_on_stdin:
        return _checked(sys.stdin.read(MAX_KEY + 2))
    if offer.key_variable is None:
        return ""
    known = "" if offer.is_own_address else load_variables().get(offer.key_variable, "").strip()
    if not has_person:
        if not known and not offer.is_own_address:
            raise click.UsageError(f"there is no key for {offer.label}: pass --key-stdin, or set {offer.key_variable}")
        return known
    more = (
        f"; Enter: keep the one in {offer.key_variable}" if known else "; Enter: none" if offer.is_own_address else ""
    )
    while True:
        question = f"Key for {'it' if offer.is_own_address else offer.label} (not shown{more})"
        key = _checked(str(click.prompt(question, hide_input=True, err=True, default="", show_default=False))) or known
        if key or offer.is_own_address:
            return key
        write_stderr("A key is needed. Ctrl-C leaves without storing anything.")


def _ask_model(answers: Answers, *, has_person: bool) -> str | None:
    """Return the name of the model: the provider's usual one, one of its list, or what the user types."""
    known = PROVIDERS.get(answers.offer.provider)
    usual = known.model if known is not None and answers.base_url is None else None
    if usual is not None and not has_person:
        return usual
    names = list_names(choose_model(replace(answers, model="any").settings, {}))
    if not has_person:
        if not names:
            raise ConfigError("the endpoint lists no models; nothing was stored", hint="pass --model NAME")
        return names[0]
    for number, each in enumerate(names[:MAX_LISTED], 1):
        write_stderr(f"  {number}  {each}")
    if len(names) > MAX_LISTED:
        write_stderr(f"  and {len(names) - MAX_LISTED} more, by name")
    first = usual or (names[0] if names else None)
    answer = str(click.prompt("Model" if not names else "Model (number or name)", default=first, err=True)).strip()
    is_number = answer.isdecimal() and 1 <= int(answer[:4]) <= min(len(names), MAX_LISTED)
    return names[int(answer) - 1] if is_number else answer


def _checked(key: str) -> str:
    key = key.strip()
    if len(key) > MAX_KEY or not key.isprintable() or not key.isascii() or " " in key:
        raise InvalidValue("this cannot be a key: it has blanks or unusual characters", hint="nothing was stored")
    return key


def _store(answers: Answers) -> None:
    """Store the key first: the setting that refers to it is written when it is there."""
    home, offer = get_hermes_home(), answers.offer
    variable = offer.key_variable or (None if not answers.key else CUSTOM_VARIABLE)
    before = _present(load_config(home))
    if answers.key and variable is not None and load_variables(home).get(variable) != answers.key:
        set_secret(home, variable, answers.key)
    settings = {
        "provider": offer.provider,
        "default": answers.model,
        "base_url": answers.base_url,
        "api_key": f"${{{variable}}}" if answers.key and variable is not None else None,
    }
    for name, value in reversed(settings.items()):  # each is written before the ones that are there
        if value is not None or name in before:
            set_setting(home, f"model.{name}", value)


def _present(config: Config) -> frozenset[str]:
    """Return the settings of the model that have a value now."""
    names = ("provider", "default", "base_url", "api_key")
    return frozenset(each for each in names if getattr(config.model, each) is not None)
