"""The registry: which platforms are served, and by what."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.errors import ConfigError
from hermes.gateway.platform import Platform
from hermes.gateway.platform_config import PlatformConfig
from hermes.platforms.base import BaseAdapter
from hermes.platforms.base.context import AdapterContext, MakeAdapter
from hermes.platforms.registry import find_maker, make_adapters, platform_names, served


def find_recorder(made: list[tuple[str, AdapterContext]], broken: str = "") -> object:
    def find(name: str) -> MakeAdapter:
        def make(context: AdapterContext) -> BaseAdapter:
            if name == broken:
                raise ConfigError("the token is missing", hint="set platforms.slack.token")
            made.append((name, context))
            return BaseAdapter()

        return make

    return find


def test_the_five_platforms_are_built_in() -> None:
    assert platform_names()[:5] == ["telegram", "discord", "slack", "whatsapp_cloud", "matrix"]


def test_an_unknown_platform_names_those_that_are_known() -> None:
    with pytest.raises(ConfigError) as refused:
        find_maker("nonesuch")
    assert "telegram" in (refused.value.hint or "")


def test_one_platform_that_cannot_be_made_leaves_the_others(tmp_path: Path) -> None:
    made: list[tuple[str, AdapterContext]] = []
    platforms = {
        Platform.TELEGRAM: PlatformConfig(enabled=True, token="t"),
        Platform.SLACK: PlatformConfig(enabled=True),
        Platform.MATRIX: PlatformConfig(enabled=False),
    }
    result = make_adapters(platforms, tmp_path, find=find_recorder(made, "slack"))  # type: ignore[arg-type]
    assert [name for name, _ in made] == ["telegram"]
    assert len(result.adapters) == 1
    assert result.problems == {"slack": "the token is missing; set platforms.slack.token"}
    assert made[0][1].media.path == tmp_path / "media" / "telegram"


def test_a_whatsapp_section_of_the_cloud_api_is_served_by_its_adapter() -> None:
    cloud = PlatformConfig(enabled=True, extra={"phone_number_id": "1"})
    assert [name for name, _ in served({Platform.WHATSAPP: cloud})] == ["whatsapp_cloud"]
    assert [name for name, _ in served({Platform.WHATSAPP: PlatformConfig(enabled=True)})] == ["whatsapp"]


def test_what_needs_no_adapter_is_left_out() -> None:
    on = PlatformConfig(enabled=True)
    assert list(served({Platform.LOCAL: on, Platform.API_SERVER: on, Platform.WEBHOOK: on})) == []
