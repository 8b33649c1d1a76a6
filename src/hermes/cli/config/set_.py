"""`hermes config set` and `hermes config unset`."""

from __future__ import annotations

import re
import sys
from typing import Any, Literal, get_origin

import click

from hermes.cli.config.setting_names import SettingName, find_setting
from hermes.cli.config.settings_writer import set_secret, set_setting
from hermes.cli.display.terminal import printable, write_stdout
from hermes.config import CONFIG_FILENAME, Config, load_config
from hermes.envfile import expand
from hermes.errors import ConfigError, InvalidValue
from hermes.home import get_hermes_home

_MAX_LINE = 8_192
_PLACE = re.compile(r"^\S.{0,4096}?, line \d+: ")
"""The place in a file that was not written."""


@click.command("set")
@click.argument("name")
@click.argument("value", required=False)
def set_(name: str, value: str | None) -> None:
    """Set NAME to VALUE in config.yaml.

    The file keeps its comments, and nothing is written if the value does not fit the setting. Lists are written as
    [a, b]. A secret is stored in .env, and config.yaml refers to it; without VALUE it is asked for without showing it.
    """
    home, setting = get_hermes_home(), find_setting(Config, name)
    dotted = ".".join(setting.path)
    if value is None:
        value = _ask(dotted, setting)
    if setting.is_secret and not expand(value, {}).names:
        variable = variable_for(setting)
        set_secret(home, variable, value)
        value = f"${{{variable}}}"
    load_config(home)  # a mistake that is in the file already is reported as it is
    try:
        set_setting(home, dotted, parse_value(setting, value))
    except ConfigError as error:
        reason = _PLACE.sub("", error.message)
        raise InvalidValue(reason, hint="nothing was changed") from error
    write_stdout(printable(f"{dotted}: {value} (in {home / CONFIG_FILENAME})"))


@click.command()
@click.argument("name")
def unset(name: str) -> None:
    """Give NAME its default again."""
    home, setting = get_hermes_home(), find_setting(Config, name)
    set_setting(home, ".".join(setting.path), None)
    write_stdout(printable(f"{'.'.join(setting.path)} has its default (in {home / CONFIG_FILENAME})"))


def parse_value(setting: SettingName, text: str) -> Any:
    """Return a value as the setting expects it; text stays text, also if it looks like a number."""
    if setting.hint is str or get_origin(setting.hint) is Literal or expand(text, {}).names:
        return text
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise InvalidValue(
            f"the value of {'.'.join(setting.path)} is not valid YAML", hint="write a list as '[a, b]'"
        ) from None


def variable_for(setting: SettingName) -> str:
    """Return the variable in which a secret is stored, such as HERMES_MODEL_API_KEY."""
    letters = "".join(each if each.isascii() and each.isalnum() else "_" for each in "_".join(setting.path))
    return f"HERMES_{letters.upper()}"


def _ask(dotted: str, setting: SettingName) -> str:
    if not setting.is_secret:
        raise click.UsageError(f"which value should {dotted} have? Pass it after the name")
    if sys.stdin.isatty():
        value = str(click.prompt(dotted, hide_input=True, err=True))
    else:
        value = sys.stdin.readline(_MAX_LINE).removesuffix("\n")
    if not value.strip():
        raise InvalidValue(f"the value of {dotted} is empty", hint="nothing was stored")
    return value.strip()
