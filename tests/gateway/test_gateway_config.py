"""The gateway's settings: config.yaml, policies per platform and type, and errors that name key, value and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.errors import ConfigError, InvalidValue
from hermes.gateway import (
    GatewayConfig,
    HomeChannel,
    Platform,
    PlatformConfig,
    SessionResetPolicy,
    StreamingConfig,
    load_gateway_config,
)


def load(home: Path, text: str, **environ: str) -> GatewayConfig:
    (home / "config.yaml").write_text(text)
    return load_gateway_config(home, environ=environ)


def test_defaults(tmp_path: Path) -> None:
    config = load(tmp_path, "")
    assert config == GatewayConfig(sessions_dir=tmp_path / "sessions")
    assert config.group_sessions_per_user is True
    assert config.thread_sessions_per_user is False
    assert config.session_store_max_age_days == 0
    assert config.default_reset_policy == SessionResetPolicy("both", 4, 1440)
    assert config.reset_triggers == ["/new", "/reset"]


def test_sessions_directory_is_in_the_hermes_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    assert GatewayConfig().sessions_dir == tmp_path / "sessions"


FULL = """
timezone: Europe/Berlin
group_sessions_per_user: false
thread_sessions_per_user: true
session_store_max_age_days: 30
session_reset:
  mode: idle
  idle_minutes: 30
reset_by_type:
  group: {mode: none}
  dm: {mode: daily, at_hour: 5}
reset_by_platform:
  slack: {mode: daily}
platforms:
  telegram:
    enabled: true
    token: 123:abc
    session_reset:
      mode: both
      at_hour: 6
      notify: false
    home_channel:
      chat_id: -10012345
      name: Lounge
  slack:
    enabled: true
    session_reset: {mode: none}
  pigeon_post:
    enabled: true
streaming:
  enabled: true
  transport: edit
privacy:
  redact_pii: true
gateway:
  jsonl_transcripts: true
"""


def test_every_section_is_read(tmp_path: Path) -> None:
    config = load(tmp_path, FULL)
    assert config.timezone == "Europe/Berlin"
    assert config.zone is not None
    assert (config.group_sessions_per_user, config.thread_sessions_per_user) == (False, True)
    assert config.session_store_max_age_days == 30
    assert config.streaming == StreamingConfig(enabled=True, transport="edit")
    assert config.redact_pii
    assert config.jsonl_transcripts
    home = HomeChannel(Platform.TELEGRAM, "-10012345", "Lounge")
    assert config.get_home_channel(Platform.TELEGRAM) == home
    assert config.platforms[Platform.TELEGRAM].token == "123:abc"
    assert config.get_connected_platforms() == [Platform.TELEGRAM]


@pytest.mark.parametrize(
    ("platform", "chat_type", "mode", "at_hour"),
    [
        (Platform.TELEGRAM, "dm", "both", 6),
        (Platform.TELEGRAM, "group", "both", 6),
        (Platform.SLACK, "dm", "none", 4),
        (Platform.DISCORD, "dm", "daily", 5),
        (Platform.DISCORD, "group", "none", 4),
        (Platform.DISCORD, "channel", "idle", 4),
        (None, None, "idle", 4),
    ],
)
def test_platform_wins_over_type_over_default(
    tmp_path: Path, platform: Platform | None, chat_type: str | None, mode: str, at_hour: int
) -> None:
    policy = load(tmp_path, FULL).get_reset_policy(platform, chat_type)
    assert (policy.mode, policy.at_hour) == (mode, at_hour)


def test_policy_of_a_platform_replaces_the_whole_default(tmp_path: Path) -> None:
    text = "session_reset: {idle_minutes: 7}\nplatforms: {slack: {session_reset: {mode: idle}}}"
    assert load(tmp_path, text).get_reset_policy(Platform.SLACK).idle_minutes == 1440


@pytest.mark.parametrize(
    ("text", "line", "key", "value"),
    [
        ("session_reset:\n  mode: weekly", 2, "session_reset.mode", "weekly"),
        ("session_reset: {at_hour: 25}", 1, "session_reset.at_hour", "25"),
        ("session_reset: {at_hour: -1}", 1, "session_reset.at_hour", "-1"),
        ("session_reset: {idle_minutes: 0}", 1, "session_reset.idle_minutes", "0"),
        (
            "platforms:\n  slack:\n    session_reset:\n      at_hour: 24",
            4,
            "platforms.slack.session_reset.at_hour",
            "24",
        ),
        (
            "platforms:\n  slack:\n    session_reset:\n      mode: weekly",
            4,
            "platforms.slack.session_reset.mode",
            "weekly",
        ),
        ("reset_by_type:\n  group:\n    mode: x", 3, "reset_by_type.group.mode", "x"),
        ("reset_by_platform: {x: {idle_minutes: -2}}", 1, "reset_by_platform.x.idle_minutes", "-2"),
        ("\ntimezone: Mars/Olympus", 2, "timezone", "Mars/Olympus"),
        ("timezone: ../../etc/passwd", 1, "timezone", "../../etc/passwd"),
        ("group_sessions_per_user: maybe", 1, "group_sessions_per_user", "maybe"),
        ("session_store_max_age_days: -1", 1, "session_store_max_age_days", "-1"),
        ("streaming: {transport: pigeon}", 1, "streaming.transport", "pigeon"),
    ],
)
def test_wrong_setting_names_key_value_file_and_line(
    tmp_path: Path, text: str, line: int, key: str, value: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert f"{tmp_path / 'config.yaml'}, line {line}: {key} is " in caught.value.message
    assert value in caught.value.message
    assert caught.value.hint


def test_token_is_never_shown(tmp_path: Path) -> None:
    config = load(tmp_path, "platforms: {telegram: {enabled: true, token: hunter2}}")
    assert config.platforms[Platform.TELEGRAM].token == "hunter2"
    assert "hunter2" not in repr(config)


def test_variables_win_over_the_file(tmp_path: Path) -> None:
    text = "session_reset: {idle_minutes: 7}\nplatforms: {telegram: {enabled: true}}"
    config = load(
        tmp_path,
        text,
        SESSION_IDLE_MINUTES="9",
        SESSION_RESET_HOUR="3",
        TELEGRAM_HOME_CHANNEL="55",
        TELEGRAM_HOME_CHANNEL_NAME="Den",
        TELEGRAM_HOME_CHANNEL_THREAD_ID="2",
    )
    assert (config.default_reset_policy.idle_minutes, config.default_reset_policy.at_hour) == (9, 3)
    assert config.get_home_channel(Platform.TELEGRAM) == HomeChannel(Platform.TELEGRAM, "55", "Den", "2")


@pytest.mark.parametrize(("name", "value"), [("SESSION_IDLE_MINUTES", "soon"), ("SESSION_RESET_HOUR", "25")])
def test_wrong_variable_is_named_with_its_value(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, "", **{name: value})
    assert name in caught.value.message
    assert value in caught.value.message


def test_configuration_round_trips_through_its_dict(tmp_path: Path) -> None:
    config = load(tmp_path, FULL)
    assert GatewayConfig.from_dict(config.to_dict()) == config
    assert GatewayConfig.from_dict({}) == GatewayConfig()


def test_policies_can_be_given_by_both_documented_names() -> None:
    config = GatewayConfig.from_dict(
        {
            "session_reset": {"mode": "none"},
            "reset_by_platform": {"slack": {"mode": "daily"}, "discord": {"mode": "idle"}},
            "platforms": {"slack": {"session_reset": {"mode": "both"}}},
        }
    )
    assert config.get_reset_policy(Platform.TELEGRAM).mode == "none"
    assert config.get_reset_policy(Platform.SLACK).mode == "both"
    assert config.get_reset_policy(Platform.DISCORD).mode == "idle"


@pytest.mark.parametrize(
    "wrong", [{"session_reset": {"mode": "weekly"}}, {"platforms": {"slack": {"session_reset": {"at_hour": 25}}}}]
)
def test_wrong_policy_in_a_dict_raises_value_error(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"mode|at_hour"):
        GatewayConfig.from_dict(wrong)


def test_unknown_time_zone_is_refused() -> None:
    with pytest.raises(InvalidValue, match="Mars"):
        GatewayConfig(timezone="Mars/Olympus")


@pytest.mark.parametrize(
    ("platform", "settings", "is_connected"),
    [
        (Platform.TELEGRAM, PlatformConfig(enabled=True, token="t"), True),
        (Platform.TELEGRAM, PlatformConfig(enabled=False, token="t"), False),
        (Platform.TELEGRAM, PlatformConfig(enabled=True), False),
        (Platform.TELEGRAM, PlatformConfig(enabled=True, api_key="k"), True),
        (Platform.WEBHOOK, PlatformConfig(enabled=True), True),
        (Platform.API_SERVER, PlatformConfig(enabled=True), True),
        (Platform.SIGNAL, PlatformConfig(enabled=True, extra={"http_url": "u"}), True),
        (Platform.EMAIL, PlatformConfig(enabled=True, extra={}), False),
        (Platform.from_stored("absent_one"), PlatformConfig(enabled=True, token="t"), False),
    ],
)
def test_connected_platforms(platform: Platform, settings: PlatformConfig, is_connected: bool) -> None:
    config = GatewayConfig(platforms={platform: settings})
    assert (platform in config.get_connected_platforms()) is is_connected


@pytest.mark.parametrize(
    ("word", "value"), [("yes", True), ("on", True), ("1", True), ("off", False), ("no", False), ("perhaps", False)]
)
def test_words_for_truth_values(word: str, value: bool) -> None:
    assert PlatformConfig.from_dict({"enabled": word}).enabled is value


def test_malformed_numbers_of_streaming_are_the_defaults() -> None:
    read = StreamingConfig.from_dict({"edit_interval": "junk", "buffer_threshold": None, "cursor": 5, "enabled": "yes"})
    assert read == StreamingConfig(enabled=True)
    assert (read.edit_interval, read.buffer_threshold, read.transport) == (0.8, 24, "auto")
    assert StreamingConfig.from_dict(read.to_dict()) == read


def test_home_channel_round_trips() -> None:
    plain = HomeChannel(Platform.TELEGRAM, "5")
    assert plain.to_dict() == {"platform": "telegram", "chat_id": "5", "name": "Home"}
    threaded = HomeChannel(Platform.TELEGRAM, "5", "Den", "2")
    assert HomeChannel.from_dict(plain.to_dict()) == plain
    assert HomeChannel.from_dict(threaded.to_dict()) == threaded


def test_a_platform_can_have_its_own_streaming(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "streaming: {enabled: true, edit_interval: 2}\n"
        "platforms:\n  telegram: {streaming: {edit_interval: 3, cursor: ''}}\n  slack: {streaming: {enabled: false}}\n"
    )
    config = load_gateway_config(tmp_path, environ={})
    telegram, slack, discord = (
        config.get_streaming(each) for each in (Platform.TELEGRAM, Platform.SLACK, Platform.DISCORD)
    )
    assert (telegram.enabled, telegram.edit_interval, telegram.cursor) == (True, 3, "")
    assert (slack.enabled, slack.edit_interval) == (False, 2)
    assert discord == config.streaming
    assert config.has_streaming
    assert GatewayConfig.from_dict(config.to_dict()).get_streaming(Platform.TELEGRAM) == telegram


def test_settings_of_a_platform_may_be_lists(tmp_path: Path) -> None:
    text = "platforms: {matrix: {extra: {require_mention: false, free_response_chats: ['!a', 5], n: 1}}}"
    (tmp_path / "config.yaml").write_text(text)
    extra = load_gateway_config(tmp_path, environ={}).platforms[Platform.MATRIX].extra
    assert extra == {"require_mention": "false", "free_response_chats": ("!a", "5"), "n": "1"}
    (tmp_path / "config.yaml").write_text("platforms: {matrix: {extra: {x: {y: 1}}}}")
    with pytest.raises(ConfigError):
        load_gateway_config(tmp_path, environ={})
