"""The settings of Matrix, and what is wrong with them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import ConfigError
from hermes.gateway.platform import Platform
from hermes.gateway.platform_config import PlatformConfig
from hermes.platforms.matrix.settings import MatrixSettings, read_settings
from hermes.platforms.registry import make_adapters

GUIDE = (Path(__file__).parents[3] / "docs" / "guide" / "matrix.md").read_text("utf-8")
ADDRESS = "https://matrix.example.org"


def config(token: str | None = "syt_secret", **extra: Any) -> PlatformConfig:
    return PlatformConfig(enabled=True, token=token, extra=extra)


def test_defaults_need_a_token_and_the_homeserver() -> None:
    settings = read_settings(config(base_url=f"{ADDRESS}/"))
    assert (settings.base_url, settings.inviters, settings.session_scope) == (ADDRESS, None, "room")
    assert settings.require_mention
    assert "secret" not in repr(settings)


def test_inviters_are_users_servers_or_all() -> None:
    settings = read_settings(config(base_url=ADDRESS, accept_invites_from="@a:x.org, *:y.org"))
    named = {each: settings.names_inviter(each) for each in ("@a:x.org", "@b:x.org", "@c:y.org", "@d:z.y.org", "x")}
    assert named == {"@a:x.org": True, "@b:x.org": False, "@c:y.org": True, "@d:z.y.org": False, "x": False}
    assert read_settings(config(base_url=ADDRESS, accept_invites_from=["*"])).names_inviter("@e:f")
    assert not read_settings(config(base_url=ADDRESS, accept_invites_from=[])).names_inviter("@e:f")


@pytest.mark.parametrize(
    ("token", "extra", "problem"),
    [
        (None, {"base_url": ADDRESS}, "token is missing"),
        ("t", {}, "base_url is missing"),
        ("t", {"base_url": "matrix.example.org"}, "base_url is not an address"),
        ("t", {"base_url": "https://a:b@example.org"}, "base_url is not an address"),
        ("t", {"base_url": ADDRESS, "session_scope": "all"}, "session_scope is 'all'"),
        ("t", {"base_url": ADDRESS, "accept_invites_from": 5}, "accept_invites_from is not a list"),
        ("t", {"base_url": ADDRESS, "backlog_limit": -1}, "backlog_limit is -1"),
    ],
)
def test_wrong_setting_is_named(token: str | None, extra: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as failure:
        read_settings(config(token, **extra))
    assert failure.value.hint


def test_registry_makes_the_adapter_without_connecting_it(tmp_path: Path) -> None:
    made = make_adapters({Platform.MATRIX: config(base_url=ADDRESS)}, tmp_path)
    assert made.problems == {}
    (adapter,) = made.adapters
    assert (adapter.platform, adapter.needs_one_poller, adapter.can_edit) == ("matrix", True, True)


def test_guide_explains_every_setting() -> None:
    table = GUIDE.partition("| setting in")[2].partition("\n\n")[0]
    explained = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    others = {"token", "reply_to_mode", "answers_strangers"}
    named = {"accept_invites_from" if each == "inviters" else each for each in MatrixSettings.__dataclass_fields__}
    assert explained == named - others
