"""What `@url:` attaches: pages that the guard allows."""

from __future__ import annotations

import pytest

from hermes.agent.references.attach import Attached, ReferenceReader
from hermes.errors import InvalidValue
from tests.agent.references.conftest import CONTEXT_TOKENS, remark_on
from tests.agent.tools.workbench import Workbench
from tests.web.servers import Names, Reply, Server, TestNetwork, redirect, respond


def fetched(bench: Workbench, text: str, *script: Reply, names: Names | None = None) -> Attached:
    """Read references with a server of the test behind every public name."""
    with Server(*script) as server:
        return ReferenceReader(bench.context, CONTEXT_TOKENS, TestNetwork(server, names or Names()).fetcher).read(text)


def test_page_is_attached_as_text(bench: Workbench) -> None:
    page = respond("<title>A page</title><p>Hello</p><script>no()</script>")
    attached = fetched(bench, "see @url:http://example.org/a.", page)
    assert attached.text.endswith("@url:http://example.org/a (A page, http://example.org/a)\n```\nHello\n```")


@pytest.mark.parametrize(
    ("url", "reply", "reason"),
    [
        ("http://example.org/", respond("<p>gone</p>", 404), "the server returned an error (404)"),
        ("http://example.org/", respond("<script>x</script>"), "the page has no text"),
        ("http://example.org/", redirect("http://127.0.0.1/"), "loopback"),
        ("http://example.org/", redirect("file:///etc/passwd"), "http"),
    ],
)
def test_page_without_text_is_said_plainly(bench: Workbench, url: str, reply: bytes, reason: str) -> None:
    attached = fetched(bench, f"@url:{url}", reply)
    assert attached.count == 0
    assert reason in attached.remarks[0]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/",
        "http://2130706433/",
        "http://10.0.0.1/",
        "file:///etc/passwd",
        "ftp://example.org/",
        "javascript:alert(1)",
        "http://ada:secret@example.org/",
        "example.org",
        "http://example.org/?key=squeamish-ossifrage",
    ],
)
def test_unsafe_address_is_never_reached(bench: Workbench, url: str) -> None:
    bench.change(environ={**bench.context.environ, "OTHER_API_KEY": "squeamish-ossifrage"})
    assert remark_on(bench, f"@url:{url}")
    assert "squeamish-ossifrage" not in remark_on(bench, f"@url:{url}")


def test_terminal_escapes_in_a_title_are_shown(bench: Workbench) -> None:
    attached = fetched(bench, "@url:http://example.org/", respond("<title>\x1b]0;x\x07y</title><p>Hello</p>"))
    assert attached.count == 1
    assert "\x1b" not in attached.text


def test_long_page_is_refused(bench: Workbench) -> None:
    with pytest.raises(InvalidValue, match="more than 50 %"):
        fetched(bench, "@url:http://example.org/", respond("<p>" + "many words " * 50_000 + "</p>"))


def test_chat_without_web_tools_reaches_no_page(bench: Workbench) -> None:
    bench.change(source="telegram", toolsets=frozenset({"files"}))
    assert remark_on(bench, "@url:http://example.org/") == "this chat has no `web` tools"
