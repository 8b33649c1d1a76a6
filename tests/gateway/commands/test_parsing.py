"""Which text is a command."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.gateway.commands import BYPASS, STOPS, Parsed, command_parser, parse_command
from hermes.gateway.commands.dispatch import HANDLERS
from hermes.gateway.commands.parsing import COMMANDS

NAMES = [name for each in COMMANDS for name in (each.name, *each.aliases)]


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("/new", Parsed("new")),
        ("/new  My trip ", Parsed("new", "My trip")),
        ("/RESET", Parsed("new")),
        ("/q do this", Parsed("queue", "do this")),
        ("/bg x", Parsed("background", "x")),
        ("/btw x", Parsed("background", "x")),
        ("/fork", Parsed("branch")),
        ("/?", Parsed("help")),
        ("/new@my_bot title", Parsed("new", "title")),
        ("/undo\n2", Parsed("undo", "2")),
        ("/compress \u2014\u2014keep", Parsed("compress", "--keep")),
    ],
)
def test_commands_and_their_aliases_are_recognized(text: str, parsed: Parsed) -> None:
    assert parse_command(text) == parsed


@pytest.mark.parametrize(
    "text", ["", "new", " /new", "/", "//new", "/usr/bin", "/new/x", "/unknown", "/newer", "say /new", "/start"]
)
def test_text_paths_and_unknown_commands_are_no_commands(text: str) -> None:
    assert parse_command(text) is None


@given(
    st.one_of(
        st.text(),
        st.text(min_size=1).map(lambda text: f"/{text}"),
        st.tuples(st.sampled_from(NAMES), st.text()).map(lambda pair: f"/{pair[0]} {pair[1]}"),
        st.tuples(st.sampled_from(NAMES), st.text()).map("".join).map(lambda text: f"/{text}"),
        st.tuples(st.sampled_from(NAMES), st.text(alphabet="-\u2013\u2014 \n@/x")).map(
            lambda pair: f"/{' '.join(pair)}"
        ),
    )
)
def test_parsing_never_raises_and_a_parsed_command_parses_to_itself(text: str) -> None:
    parsed = parse_command(text)
    assert parsed is None or parse_command(parsed.text) == parsed


def test_every_command_has_a_handler_and_every_rule_names_a_command() -> None:
    names = {each.name for each in COMMANDS}
    assert names == set(HANDLERS)
    assert names >= BYPASS
    assert set(NAMES) >= STOPS
    assert len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("/fresh", Parsed("new")),
        ("/Begin@my_bot My trip", Parsed("new", "My trip")),
        ("/reset", Parsed("new")),
        ("/stop", Parsed("stop")),
        ("/", None),
        ("fresh", None),
        ("/fresher", None),
    ],
)
def test_reset_triggers_are_further_names_of_new(text: str, parsed: Parsed | None) -> None:
    assert command_parser(("/fresh", "begin", "/stop", "", "/new"))(text) == parsed
