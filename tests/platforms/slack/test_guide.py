"""What the guide shows is what the adapter takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from hermes.gateway.platform_config import PlatformConfig
from hermes.platforms.slack.settings import SlackSettings

GUIDE = (Path(__file__).parents[3] / "docs" / "guide" / "slack.md").read_text("utf-8")


def blocks() -> list[Any]:
    return [yaml.safe_load(each) for each in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)]


def test_manifest_has_a_scope_for_every_event_and_explains_each() -> None:
    manifest = blocks()[0]
    scopes = manifest["oauth_config"]["scopes"]["bot"]
    events = manifest["settings"]["event_subscriptions"]["bot_events"]
    needed = {"app_mention": "app_mentions:read", **{f"message.{each}": f"{each}:history" for each in ("im", "mpim")}}
    needed |= {f"message.{each}": f"{each}:history" for each in ("channels", "groups")}
    assert {needed[event] for event in events} <= set(scopes)
    assert sorted(scopes) == scopes
    assert [each for each in scopes if GUIDE.count(f"`{each}`") != 1] == []


def test_configuration_is_accepted_and_every_setting_is_explained() -> None:
    section = blocks()[1]["platforms"]["slack"]
    filled = {name: f"xapp-{name}" for name in section["extra"]}
    SlackSettings.of(PlatformConfig(enabled=True, token="xoxb-1", extra=filled))
    explained = set(
        re.findall(r"^\| `(\w+)` \|", GUIDE.partition("| setting in")[2].partition("\n\n")[0], re.MULTILINE)
    )
    assert explained == set(SlackSettings.__dataclass_fields__) - {"token"}
