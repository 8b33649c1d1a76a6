"""Running tool calls: every call gets a result, and every result is limited."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.registry import Registry, tool
from hermes.agent.tools.results import ToolResult
from hermes.agent.tools.toolbox import TOOLBOX
from hermes.errors import NotFound
from tests.agent.tools.workbench import SESSION, Workbench

SRC = Path(__file__).parents[3] / "src"
KEY = "sk-abcdefghijklmnopqrstuvwxyz012345"


@tool(toolset="files")
def echo(text: str) -> str:
    """Say something."""
    return text


@tool(toolset="files")
def whose(context: ToolContext, prefix: str = "") -> str:
    """Tell the session."""
    return f"{prefix}{context.session_id}"


@tool(toolset="files", more="say a smaller number")
def long(size: int) -> str:
    """Say a lot."""
    return "a" * size + "z"


@tool(toolset="files")
def broken(how: str) -> str:
    """Fail."""
    if how == "hermes":
        raise NotFound("there is no such thing", hint="look elsewhere")
    if how == "file":
        raise FileNotFoundError(2, "No such file or directory", "/nowhere")
    if how == "secret":
        raise RuntimeError(f"cannot reach https://me:hunter2@example.org with {KEY} and squeamish-ossifrage")
    if how == "interrupt":
        raise KeyboardInterrupt
    return None  # type: ignore[return-value]


@tool(toolset="files")
def careful() -> str | ToolResult:
    """Decline."""
    return ToolResult("no, thanks", is_error=True)


@tool(toolset="recall")
def elsewhere() -> str:
    """Be of another toolset."""
    return "here"


TOOLS = Registry([whose, echo, long, broken, careful, elsewhere])


def error(bench: Workbench, name: str, arguments: str = "{}") -> str:
    result = bench.run(name, arguments, TOOLS)
    assert result.is_error
    return str(json.loads(result.text)["error"])


def test_arguments_reach_the_function(bench: Workbench) -> None:
    assert bench.run("echo", '{"text": "hello"}', TOOLS) == ToolResult("hello")


def test_registry_passes_the_context(bench: Workbench) -> None:
    assert bench.run("whose", '{"prefix": "it is "}', TOOLS).text == f"it is {SESSION}"


def test_error_result_stays_an_error(bench: Workbench) -> None:
    assert bench.run("careful", "", TOOLS) == ToolResult("no, thanks", is_error=True)


def test_wrong_arguments_are_explained_with_the_usage(bench: Workbench) -> None:
    result = bench.run("echo", '{"txt": 1}', TOOLS)
    assert result.is_error
    assert json.loads(result.text) == {
        "error": 'there is no parameter "txt", did you mean text?; text is missing',
        "usage": "echo(text: string)",
    }


def test_unknown_tool_suggests_similar_names(bench: Workbench) -> None:
    assert error(bench, "ehco") == "there is no tool 'ehco'; did you mean echo?"
    assert (
        error(bench, "web_search")
        == "there is no tool 'web_search'; there are: broken, careful, echo, elsewhere, long, whose"
    )


def test_tool_of_a_disabled_toolset_is_unknown(bench: Workbench) -> None:
    bench.change(toolsets={"files"})
    assert error(bench, "elsewhere") == "there is no tool 'elsewhere'; there are: broken, careful, echo, long, whose"


def test_no_tool_runs_after_a_cancel(bench: Workbench) -> None:
    bench.cancellation.cancel()
    assert error(bench, "echo", '{"text": "hello"}') == "not run: the user stopped this turn"


class TestFailures:
    def test_hermes_error_includes_its_hint(self, bench: Workbench) -> None:
        assert error(bench, "broken", '{"how": "hermes"}') == "there is no such thing (look elsewhere)"

    def test_system_error_includes_its_file(self, bench: Workbench) -> None:
        assert error(bench, "broken", '{"how": "file"}') == "No such file or directory: /nowhere"

    def test_secrets_in_an_error_are_hidden(self, bench: Workbench) -> None:
        bench.change(environ={"MY_SERVICE_TOKEN": "squeamish-ossifrage"})
        reported = error(bench, "broken", '{"how": "secret"}')
        assert reported == "RuntimeError: cannot reach https://me:***@example.org with *** and ***"

    def test_unexpected_error_is_logged_without_its_text(
        self, bench: Workbench, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING):
            error(bench, "broken", '{"how": "secret"}')
        assert caplog.messages == ["the tool broken failed with RuntimeError"]

    def test_result_that_is_not_text_is_a_failure(self, bench: Workbench) -> None:
        assert error(bench, "broken", '{"how": "nothing"}') == "TypeError: the tool returned NoneType instead of text"

    def test_keyboard_interrupt_is_raised(self, bench: Workbench) -> None:
        with pytest.raises(KeyboardInterrupt):
            bench.run("broken", '{"how": "interrupt"}', TOOLS)


class TestBounds:
    def test_long_result_keeps_both_ends_with_a_hint(self, bench: Workbench) -> None:
        text = bench.run("long", '{"size": 80000}', TOOLS).text
        assert len(text) == 50_000
        assert text.startswith("aaaa")
        assert text.endswith("az")
        assert "[... about 30001 characters omitted; to see them, say a smaller number ...]" in text

    def test_result_at_the_limit_is_whole(self, bench: Workbench) -> None:
        assert bench.run("long", '{"size": 49999}', TOOLS).text == "a" * 49_999 + "z"

    @pytest.mark.parametrize(
        ("written", "shown"),
        [
            (r"a\u0000b", "a\ufffdb"),
            (r"a\ud800b", "a\ufffdb"),
            (r"\ud83d\ude00", "😀"),
            (r"\udc80", "\ufffd"),
            ("é日本", "é日本"),
        ],
    )
    def test_result_is_made_valid_text(self, bench: Workbench, written: str, shown: str) -> None:
        assert bench.run("echo", f'{{"text": "{written}"}}', TOOLS).text == shown

    def test_error_is_made_valid_text(self, bench: Workbench) -> None:
        assert error(bench, r"a\ud800").encode()
        assert bench.run("\ud800", "{}", TOOLS).text.encode()


class TestSchemas:
    def test_schema_order_is_independent_of_registration(self) -> None:
        assert json.dumps(Registry([echo, whose]).schemas({"files"})) == json.dumps(
            Registry([whose, echo]).schemas({"files"})
        )

    def test_schemas_list_only_tools_of_the_toolsets(self) -> None:
        assert [each["function"]["name"] for each in TOOLBOX.schemas({"recall", "memory"})] == [
            "memory",
            "session_search",
        ]

    def test_schemas_are_the_same_bytes_in_every_process(self) -> None:
        program = (
            "import json; from hermes.agent.tools.toolbox import TOOLBOX;"
            "print(json.dumps(TOOLBOX.schemas(TOOLBOX.toolsets)))"
        )
        seeds = ("1", "2")
        outputs = {
            subprocess.run(
                [sys.executable, "-c", program],
                env={"PYTHONPATH": str(SRC), "PYTHONHASHSEED": seed},
                capture_output=True,
                check=True,
                timeout=60,
            ).stdout
            for seed in seeds
        }
        assert outputs == {json.dumps(TOOLBOX.schemas(TOOLBOX.toolsets)).encode() + b"\n"}

    def test_every_tool_is_in_one_of_the_known_toolsets(self) -> None:
        assert TOOLBOX.toolsets == {"recall", "memory", "files", "terminal", "skills", "web"}

    def test_two_tools_with_one_name_are_refused(self) -> None:
        with pytest.raises(ValueError, match="echo"):
            Registry([echo, echo])


def test_tools_load_no_heavy_modules() -> None:
    program = (
        "import sys; import hermes.agent.tools.toolbox;"
        "heavy = ('asyncio', 'httpx2', 'subprocess', 'click', 'msgspec', 'yaml', 'http');"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(SRC)}, capture_output=True, check=True, timeout=60
    )
    assert done.stdout == b"[]\n"
