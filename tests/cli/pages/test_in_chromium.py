"""The HTML pages in a real browser: readable at two widths, and nothing in them loads, runs or leaves its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from hermes.cli.insights.page import render_page
from hermes_state import SessionDB
from tests.cli.conftest import Hermes
from tests.cli.pages.samples import talk_page
from tests.support import chromium
from tests.support.chromium import Chromium
from tests.support.servers import skip_or_fail
from tests.support.sums import NOON, SUMS, sample

pytestmark = pytest.mark.timeout(chromium.PATIENCE_S)

WIDTHS = (420, 1200)
SMALLEST_TEXT_PX = 11
HOSTILE = (
    "<script>document.title='owned'</script><img src=http://127.0.0.1:9/a onerror=\"document.title='owned'\">\n\n"
    "![a](http://127.0.0.1:9/b.png) [b](javascript:document.title='owned') <http://127.0.0.1:9/c>\n\n"
    '[d](data:text/html,x) [e](file:///etc/passwd) [f]( https://example.org/"onclick="x )\n\n'
    "```html\n</code></pre><script>document.title='owned'</script>\n```\n\n"
    "| <style>*{display:none}</style> | `</code><iframe src=//127.0.0.1:9>` |\n"
    "|---|:-:|\n| </table><base href=//x> | x |\n"
)
"""What a model could write."""

VISIBLE_FONTS = """[...document.querySelectorAll('body *')]
  .filter(each => [...each.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()))
  .filter(each => each.getBoundingClientRect().height > 0)
  .map(each => parseFloat(getComputedStyle(each).fontSize))"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """Chromium with an empty profile."""
    try:
        chromium.find()
    except OSError as error:
        skip_or_fail(f"there is no Chromium: {error}")
    with Chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture(scope="module")
def insights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The insights of a month."""
    file = tmp_path_factory.mktemp("pages") / "insights.html"
    file.write_text(render_page(sample(SUMS), NOON), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported conversation."""
    return talk_page(tmp_path_factory.mktemp("pages"))


def assert_readable(browser: Chromium, file: Path, width: int) -> None:
    for is_dark in (False, True):
        browser.open(file, width, is_dark=is_dark)
        assert browser.value("document.documentElement.scrollWidth") == width
        assert min(browser.value(VISIBLE_FONTS)) >= SMALLEST_TEXT_PX
        assert browser.complaints == []
        assert browser.requested == [file.resolve().as_uri()]


@pytest.mark.parametrize("width", WIDTHS)
def test_insights_fit_and_are_readable(browser: Chromium, insights: Path, width: int) -> None:
    assert_readable(browser, insights, width)
    hidden = "[...document.querySelectorAll('.wide')].filter(each => each.scrollWidth > each.clientWidth)"
    assert browser.value(f"{hidden}.map(each => each.textContent).join()") == ""
    labels = (
        "[...document.querySelectorAll('.chart')].map(each => [...each.querySelectorAll('.scale span, .marks span')]"
    )
    boxes = browser.value(f"JSON.stringify({labels}.map(each => each.getBoundingClientRect().toJSON())))")
    charts = json.loads(boxes)
    assert len(charts) == 4
    for each in charts:
        assert all(box["left"] >= 0 and box["right"] <= width for box in each)
        below = sorted((box["left"], box["right"]) for box in each[3:])
        assert all(end <= start for (_, end), (start, _) in pairwise(below)), "labels overlap"


@pytest.mark.parametrize("width", WIDTHS)
def test_exported_conversation_fits_and_is_readable(browser: Chromium, talk: Path, width: int) -> None:
    assert_readable(browser, talk, width)


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_hostile_text_stays_text(browser: Chromium, hermes: Hermes, tmp_path: Path, role: str) -> None:
    with SessionDB(hermes.database) as db:
        db.create_session("s1", "cli")
        db.append_message("s1", role, HOSTILE, tool_name=HOSTILE if role == "tool" else None)
        db.set_session_title("s1", "<script>document.title='owned'</script>")
    file = tmp_path / "talk.html"
    assert hermes("sessions", "export", str(file), "--format", "html").returncode == 0
    browser.open(file, 420)
    assert browser.value("document.title") == "1 session"
    assert browser.requested == [file.resolve().as_uri()]
    assert browser.complaints == []
    names = set(browser.value("[...document.querySelectorAll('*')].map(each => each.localName)"))
    assert names.isdisjoint({"script", "img", "iframe", "base", "object", "form", "link"})
    assert browser.value("document.querySelectorAll('style').length") == 1
    links = browser.value("[...document.querySelectorAll('a')].map(each => each.getAttribute('href'))")
    assert all(each.startswith(("#s-", "http://127.0.0.1:9/c", "https://example.org/")) for each in links)
    handlers = (
        "[...document.querySelectorAll('*')].some(each => each.getAttributeNames().some(name => name.startsWith('on')))"
    )
    assert browser.value(handlers) is False
    assert "owned" in browser.value("document.body.textContent")
