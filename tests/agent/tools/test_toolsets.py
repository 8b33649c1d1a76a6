"""The toolsets of an agent, by the source of the conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.agent.tools.toolbox import TOOLBOX
from hermes.agent.tools.toolsets import toolsets_for
from hermes.config import load_config
from hermes.errors import ConfigError

ALL = TOOLBOX.toolsets


def toolsets(home: Path, text: str, source: str) -> frozenset[str]:
    """The toolsets of a source for a configuration."""
    (home / "config.yaml").write_text(text)
    return toolsets_for(source, load_config(home, environ={}).tools, ALL)


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("", "cli", ALL),
        ("", "tui", ALL),
        ("", "telegram", {"recall", "memory"}),
        ("", "api_server", {"recall", "memory"}),
        ("", "", {"recall", "memory"}),
        ("", "default", {"recall", "memory"}),
        ("tools: {cli: [recall]}", "cli", {"recall"}),
        ("tools: {cli: [recall]}", "tui", {"recall"}),
        ("tools: {cli: [recall]}", "telegram", {"recall", "memory"}),
        ("tools: {cli: []}", "cli", set()),
        ("tools: {default: [recall]}", "telegram", {"recall"}),
        ("tools: {default: [recall]}", "cli", ALL),
        ("tools: {default: []}", "telegram", set()),
        ("tools: {telegram: [all]}", "telegram", ALL),
        ("tools: {telegram: [all]}", "discord", {"recall", "memory"}),
        ("tools: {telegram: [files], default: [recall]}", "telegram", {"files"}),
        ("tools: {telegram: [files], default: [recall]}", "slack", {"recall"}),
    ],
)
def test_source_has_its_configured_toolsets(text: str, source: str, expected: set[str], tmp_path: Path) -> None:
    assert toolsets(tmp_path, text, source) == expected


def test_unknown_toolset_is_an_error_that_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        toolsets(tmp_path, "tools: {telegram: [recal, memory]}", "telegram")
    assert str(caught.value) == (
        "tools.telegram has an unknown toolset: recal (choose from files, memory, recall, skills,"
        " terminal, web and all)"
    )


def test_other_settings_of_tools_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "terminal: {env_passthrough: [GH_TOKEN, AWS_PROFILE], kill_at_exit: true}\n"
        "approvals: {mode: deny}\n"
        "memory: {max_characters: 500}\n"
    )
    config = load_config(tmp_path, environ={})
    assert config.terminal.env_passthrough == ("GH_TOKEN", "AWS_PROFILE")
    assert config.terminal.kill_at_exit is True
    assert config.approvals.mode == "deny"
    assert config.memory.max_characters == 500
    assert config.warnings == ()
