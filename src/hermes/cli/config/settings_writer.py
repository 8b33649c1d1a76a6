"""Writing settings: one value of `config.yaml`, or one secret of `.env`; everything else in the files stays."""

from __future__ import annotations

import os
from pathlib import Path

from hermes.agent.memory.lock_file import hold_lock
from hermes.agent.skills.variables import write_variable
from hermes.cli.config.setting_names import find_setting
from hermes.cli.config.yaml_edit import CannotEdit, set_value
from hermes.config import CONFIG_FILENAME, Config, load_variables
from hermes.errors import ConfigError
from hermes.home import ensure_private_dir, read_plain_file, write_private_atomic
from hermes.trust import refuse_home_of_others, refuse_settings_of_others

_BOM = "\ufeff"
_MAX_BYTES = 256 * 1024


def set_setting(home: Path, dotted_name: str, value: object) -> None:
    """Store one setting in `config.yaml`, which only the user can read; None sets it back to its default.

    Comments and other lines stay. Raise `InvalidValue` for an unknown name, and `ConfigError` if the file would not be
    valid with this value; then nothing is written.
    """
    from hermes.settings import read_settings

    name = find_setting(Config, dotted_name)
    file = home / CONFIG_FILENAME
    refuse_home_of_others(home)
    ensure_private_dir(home)
    refuse_settings_of_others(file)
    variables = load_variables(home, environ=os.environ)
    with hold_lock(home / f"{CONFIG_FILENAME}.lock"):
        text = _read(file)
        bom = _BOM if text.startswith(_BOM) else ""
        try:
            changed = set_value(text.removeprefix(_BOM), name.path, value)
        except CannotEdit as error:
            raise ConfigError(f"{file} cannot be changed: {error}", hint=f"set {dotted_name} in it by hand") from None
        read_settings(Config, changed, file=file, variables=variables)
        data = f"{bom}{changed}".encode()
        if len(data) > _MAX_BYTES:
            raise ConfigError(f"{file} would have {len(data)} bytes; the limit is {_MAX_BYTES}")
        write_private_atomic(file, data)


def set_secret(home: Path, name: str, value: str) -> None:
    """Store a variable in `.env`, which only the user can read; other lines stay. Raise `InvalidValue` if it cannot be.

    `${NAME}` in `config.yaml` refers to it.
    """
    refuse_home_of_others(home)
    write_variable(home, name, value)


def _read(file: Path) -> str:
    try:
        return read_plain_file(file).decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8 text", hint="save the file as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error
