"""The settings of a node come from the configuration; its name is fit for files and leases."""

from __future__ import annotations

import re
import socket
from dataclasses import replace

import pytest

from hermes.config import Config
from hermes.gateway.engine.settings import engine_settings, node_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("web-1", "web-1"),
        ("web 1/../x", "web-1-..-x"),
        ("  host.example ", "host.example"),
        ("größe", "gr-e"),
        ("///", "gateway"),
        ("", "gateway"),
        ("x" * 100, "x" * 60),
        ("a\nb", "a-b"),
    ],
)
def test_a_node_has_a_plain_name(text: str, expected: str) -> None:
    assert node_name(text) == expected


def test_a_name_never_leaves_the_home_as_part_of_a_file_name() -> None:
    assert "/" not in node_name("../../etc/passwd")


def test_the_given_name_wins_over_the_configured_one_and_that_over_the_machine() -> None:
    config = Config()
    named = replace(config, gateway=replace(config.gateway, node="configured"))
    assert engine_settings(named, "given").node == "given"
    assert engine_settings(named).node == "configured"
    assert engine_settings(config).node == node_name(socket.gethostname())


def test_every_process_of_a_node_has_a_holder_of_its_own() -> None:
    first, second = engine_settings(Config(), "n"), engine_settings(Config(), "n")
    assert re.fullmatch(r"n/[0-9a-f]{8}", first.holder)
    assert first.holder != second.holder


def test_the_settings_are_those_of_the_configuration() -> None:
    config = Config()
    config = replace(
        config,
        gateway=replace(config.gateway, lease_seconds=7.0, max_turns=3, reply_ttl_hours=2.0),
        agent=replace(config.agent, gateway_timeout=11, restart_drain_timeout=12, gateway_notify_interval=13),
        display=replace(config.display, busy_input_mode="queue", busy_ack_enabled=False),
    )
    settings = engine_settings(config, "n")
    assert (settings.lease_s, settings.max_turns, settings.reply_ttl_s) == (7.0, 3, 7200.0)
    assert (settings.idle_timeout_s, settings.drain_timeout_s, settings.notify_s) == (11, 12, 13)
    assert (settings.mode, settings.acknowledges) == ("queue", False)


@pytest.mark.parametrize(("most", "sessions", "expected"), [(50, None, 50), (50, 3, 3), (2, 3, 2)])
def test_the_smaller_limit_of_turns_counts(most: int, sessions: int | None, expected: int) -> None:
    config = Config()
    limited = replace(config, gateway=replace(config.gateway, max_turns=most), max_concurrent_sessions=sessions)
    assert engine_settings(limited).max_turns == expected
