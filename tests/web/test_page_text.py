"""The text of a page: readable, clean, and found in linear time."""

from __future__ import annotations

import pytest

from hermes.errors import WebGarbled
from hermes.web.body_text import read_body
from hermes.web.clean_text import clean_line, clean_text
from hermes.web.html_text import MAX_TITLE, read_html
from tests.support.quickness import is_quick


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("hello", "hello"),
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("one<br>two", "one\ntwo"),
        ("<div>one</div><div>two</div>", "one\n\ntwo"),
        ("<ul><li>a<li>b</ul>", "- a\n- b"),
        ("<table><tr><td>1</td><td>2</td></tr></table>", "1 | 2 |"),
        ("a\n  b\t c", "a b c"),
        ("&lt;b&gt; &amp;amp; &#65;&#x42; &nbsp;x", "<b> &amp; AB x"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("<a href='x>y'>link</a>", "link"),
        ('<a title="a > b">link</a>', "link"),
        ("<!-- no -->yes<!-->yes", "yesyes"),
        ("<!-- never closed <p>no", ""),
        ("<!DOCTYPE html><?xml version='1.0'?>yes", "yes"),
        ("<script>if (a < b) alert('</p>')</script>yes", "yes"),
        ("<SCRIPT>no</ScRiPt >yes", "yes"),
        ("<script>no</scriptx>no</script>yes", "yes"),
        ("<script>never closed", ""),
        ("<style>p { }</style>yes", "yes"),
        ("<svg><text>no</text><svg>no</svg>no</svg>yes", "yes"),
        ("<template><p>no</p></template>yes", "yes"),
        ("<noscript>no</noscript>yes", "yes"),
        ("<textarea><script>no</textarea>yes", "yes"),
        ("<div hidden>no<div>no</div>no</div>yes", "yes"),
        ("<div hidden/>no</div>yes", "yes"),
        ("<p hidden>no<p>yes", "yes"),
        ("<span style='display:none'>no</span>yes", "yes"),
        ("<span style='color:red; DISPLAY : none'>no</span>yes", "yes"),
        ("<span style=visibility:hidden>no</span>yes", "yes"),
        ("<span style='font-size:0'>no</span>yes", "yes"),
        ("<span style='opacity:0'>no</span><b style='opacity:0.9'>yes</b>", "yes"),
        ("<span aria-hidden='true'>no</span>yes", "yes"),
        ("<span class='hidden-xs' data-hidden='x'>yes</span>", "yes"),
        ("<span class='hidden md:block'>yes</span>", "yes"),
        ('<span title="a"hidden>no</span>yes', "yes"),
        ("<span hidden=until-found>no</span>yes", "yes"),
        ("<span title='a'style='display:none'>no</span>yes", "yes"),
        ("<span/style='display:none'>no</span>yes", "yes"),
        ("<span style='display:&#110;one'>no</span>yes", "yes"),
        ("<span title=' style=display:none hidden '>yes</span>", "yes"),
        ("<input hidden>yes", "yes"),
        ("<", "<"),
        ("<a", ""),
        ("<a href=", ""),
        ("</", "</"),
        ("<a href='>yes", "yes"),
        ("&#99999999999999;x&#xfffffffffff;", "\ufffdx\ufffd"),
        ("&#" + "9" * 5000 + ";", "\ufffd"),
        ("a\x1b[31mb\x1b]0;title\x07c\x9b1md\x00e\x7f\x08", "abcde"),
        ("a\u202eb\u200bc\u2066d\ufeffe\U000e0041f", "abcdef"),
    ],
)
def test_html_becomes_text(page: str, text: str) -> None:
    assert read_html(page).text == text


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("<title>A &amp; <b>B</b></title>", "A & <b>B</b>"),
        ("<TITLE>\n A\n  page </TITLE><title>second</title>", "A page"),
        ("<svg><title>no</title></svg>", ""),
        ("<title>a\x1b[2Jb\u202ec</title>", "abc"),
        ("<title>" + "a" * 5000, "a" * MAX_TITLE),
        ("no title", ""),
    ],
)
def test_title_is_one_clean_line(page: str, title: str) -> None:
    assert read_html(page).title == title


@pytest.mark.parametrize(
    "part",
    [
        *("<", "<!--", "<!", "<?", "<a ", "<a '", '<a "', "<a '>", "</", "</p", "<p hidden ", "<p hidden>", "<script>"),
        *("<title>", "</title", "<div hidden>", "<p style=display:", "<![CDATA[", "&", "&#", "&#9", "&amp", " \n"),
        *("\x1b[", "\x1b]", "\x1bP", "\x1b[0;", "\x9b", "\x9d", "<svg/>", "<svg>", "hidden ", "<a x='\"", "style='"),
    ],
)
def test_hostile_page_takes_linear_time(part: str) -> None:
    assert is_quick(lambda: read_html(part * 20_000))


@pytest.mark.parametrize(
    "attribute", [" style=", " style=x", " style='", " aria-hidden ", ' hidden"', "/style=display"]
)
def test_tags_with_many_attributes_take_linear_time(attribute: str) -> None:
    assert is_quick(lambda: read_html(f"<p{attribute * 500}>" * 200))


class TestCleaning:
    @pytest.mark.parametrize(
        ("text", "clean"),
        [
            ("a\r\nb\rc\n", "a\nb\nc\n"),
            ("a\tb", "a\tb"),
            ("\x1b[2J\x1b[H\x1b[?1049hx", "x"),
            ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b]52;c;aGVsbG8=\x07x", "x"),
            ("\x1bPq#0\x1b\\x", "x"),
            ("\x1b(Bx\x1bcy", "xy"),
            ("\u009b31mx\u009d0;t\u009cy", "xy"),
            ("family 👨\u200d👩\u200d👧 می\u200cخواهم", "family 👨\u200d👩\u200d👧 می\u200cخواهم"),
            ("\ud800x", "x"),
        ],
    )
    def test_nothing_that_acts_on_a_terminal_is_left(self, text: str, clean: str) -> None:
        assert clean_text(text) == clean

    def test_line_has_no_breaks(self) -> None:
        assert clean_line(" a\n\n b\x1b[1m\tc\u2028d ") == "a b cd"


class TestBodies:
    @pytest.mark.parametrize(
        "content_type",
        [
            *("text/html", "text/plain; charset=utf-8", "TEXT/HTML", "application/xhtml+xml", "application/json"),
            *("application/ld+json", "application/atom+xml", "text/markdown", "application/xml", ""),
        ],
    )
    def test_text_is_read(self, content_type: str) -> None:
        assert read_body("Grüße".encode(), content_type).text == "Grüße"

    @pytest.mark.parametrize(
        "content_type",
        [
            *("image/png", "application/pdf", "application/octet-stream", "video/mp4", "application/zip", "nonsense"),
            *("font/woff2", "multipart/form-data", "\x1b[31m/x"),
        ],
    )
    def test_other_types_are_refused(self, content_type: str) -> None:
        with pytest.raises(WebGarbled, match="not text") as caught:
            read_body(b"hello", content_type)
        assert "\x1b" not in str(caught.value)

    @pytest.mark.parametrize("content_type", ["text/html", "text/plain", "", "application/json"])
    def test_binary_data_is_refused_whatever_its_type(self, content_type: str) -> None:
        with pytest.raises(WebGarbled, match="binary"):
            read_body(b"\x7fELF\0\0\0\0", content_type)

    @pytest.mark.parametrize(
        ("body", "content_type"),
        [
            ("Grüße".encode("latin-1"), "text/plain; charset=iso-8859-1"),
            ("Grüße".encode("cp1252"), "text/plain; charset=windows-1252"),
            ("Grüße".encode("utf-16"), "text/plain"),
            ("\ufeffGrüße".encode(), "text/plain; charset=latin-1"),
            (b"<meta charset='iso-8859-15'>" + "Grüße".encode("latin-1"), "text/html"),
            ("Grüße".encode(), "text/plain; charset=nonsense"),
            ("Grüße".encode(), "text/plain; charset=unicode_escape"),
            ("Grüße".encode(), "text/plain; charset=idna"),
            ("Grüße".encode(), "text/plain; charset=zlib"),
            ("Grüße".encode(), "text/plain; charset=utf-7"),
        ],
    )
    def test_character_set_is_recognized(self, body: bytes, content_type: str) -> None:
        assert read_body(body, content_type).text == "Grüße"

    def test_invalid_bytes_are_replaced(self) -> None:
        assert read_body(b"a\xffb", "text/plain").text == "a\ufffdb"

    def test_plain_text_keeps_its_lines_and_tags(self) -> None:
        assert read_body(b"<p>\n\n  x\n", "text/plain").text == "<p>\n\n  x"
