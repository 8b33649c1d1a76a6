"""The backend is chosen from the settings and the keys, in one order, and never silently changed."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.config import WebConfig
from hermes.errors import ConfigError, NoWebBackend
from hermes.web.backends.choice import BACKENDS, EXTRACT, SEARCH, choose_backend

FIRECRAWL, PARALLEL, TAVILY = "FIRECRAWL_API_KEY", "PARALLEL_API_KEY", "TAVILY_API_KEY"


@pytest.mark.parametrize(
    ("names", "backend"),
    [
        ([FIRECRAWL], "firecrawl"),
        ([PARALLEL], "parallel"),
        ([TAVILY], "tavily"),
        ([TAVILY, PARALLEL, FIRECRAWL], "firecrawl"),
        ([TAVILY, PARALLEL], "parallel"),
        ([TAVILY, FIRECRAWL], "firecrawl"),
        (["FIRECRAWL_API_URL"], "firecrawl"),
        ([TAVILY, "FIRECRAWL_API_URL"], "firecrawl"),
    ],
)
def test_keys_choose_the_backend_in_one_order(names: list[str], backend: str) -> None:
    variables = {name: "http://127.0.0.1:3002" if name.endswith("URL") else "key" for name in names}
    for capability in (SEARCH, EXTRACT):
        assert choose_backend(WebConfig(), variables, capability).name == backend


@pytest.mark.parametrize("value", ["", "  "])
def test_empty_key_is_no_key(value: str) -> None:
    assert choose_backend(WebConfig(), {FIRECRAWL: value, TAVILY: "key"}, SEARCH).name == "tavily"


def test_setting_wins_over_the_order_of_keys() -> None:
    variables = {FIRECRAWL: "a", PARALLEL: "b", TAVILY: "c"}
    choice = choose_backend(WebConfig(backend="tavily"), variables, SEARCH)
    assert (choice.name, choice.api_key, choice.base_url) == ("tavily", "c", "https://api.tavily.com")


def test_own_server_needs_no_key() -> None:
    choice = choose_backend(WebConfig(firecrawl_url="http://crawler:3002/"), {}, SEARCH)
    assert (choice.name, choice.base_url, choice.api_key) == ("firecrawl", "http://crawler:3002", "")


def test_setting_wins_over_the_address_in_the_environment() -> None:
    variables = {"FIRECRAWL_API_URL": "http://127.0.0.1:1"}
    choice = choose_backend(WebConfig(firecrawl_url="http://127.0.0.1:2"), variables, SEARCH)
    assert choice.base_url == "http://127.0.0.1:2"


@pytest.mark.parametrize(("backend", "missing"), [("firecrawl", FIRECRAWL), ("parallel", PARALLEL), ("tavily", TAVILY)])
@pytest.mark.parametrize("capability", [SEARCH, EXTRACT])
def test_configured_backend_without_a_key_is_an_error_that_names_the_variable(
    backend: Any, missing: str, capability: str
) -> None:
    variables = {name: "key" for name in (FIRECRAWL, PARALLEL, TAVILY) if name != missing}
    with pytest.raises(NoWebBackend, match=f"the web backend is {backend}, but {missing} is not set"):
        choose_backend(WebConfig(backend=backend), variables, capability)


@pytest.mark.parametrize("setting", ["parallel_url", "tavily_url"])
def test_another_address_of_a_hosted_backend_still_needs_a_key(setting: str) -> None:
    backend: Any = setting.removesuffix("_url")
    settings: dict[str, Any] = {setting: "https://gateway.example.com"}
    config = WebConfig(backend=backend, **settings)
    with pytest.raises(NoWebBackend, match="API_KEY is not set"):
        choose_backend(config, {}, SEARCH)


class TestCapabilities:
    def test_table_of_capabilities(self) -> None:
        both = {"search", "extract"}
        expected = {"firecrawl": both, "parallel": both, "tavily": both, "direct": {"extract"}}
        assert {name: set(kind.capabilities) for name, kind in BACKENDS.items()} == expected

    def test_pages_are_read_directly_without_any_key(self) -> None:
        assert choose_backend(WebConfig(), {}, EXTRACT).name == "direct"

    def test_search_without_any_key_is_an_error_that_lists_the_keys(self) -> None:
        with pytest.raises(NoWebBackend, match=f"{FIRECRAWL}, {PARALLEL}, {TAVILY}"):
            choose_backend(WebConfig(), {}, SEARCH)

    def test_backend_that_cannot_search_is_not_replaced(self) -> None:
        with pytest.raises(NoWebBackend, match=r"direct cannot search.*firecrawl, parallel, tavily"):
            choose_backend(WebConfig(backend="direct"), {TAVILY: "key"}, SEARCH)


class TestModes:
    @pytest.mark.parametrize(
        ("setting", "variable", "mode"),
        [
            (None, None, "agentic"),
            (None, "fast", "fast"),
            (None, "one-shot", "one-shot"),
            ("one-shot", "fast", "one-shot"),
            (None, "", "agentic"),
        ],
    )
    def test_mode_of_parallel(self, setting: Any, variable: str | None, mode: str) -> None:
        variables = {PARALLEL: "key"} | ({} if variable is None else {"PARALLEL_SEARCH_MODE": variable})
        assert choose_backend(WebConfig(parallel_mode=setting), variables, SEARCH).mode == mode

    def test_unknown_mode_is_an_error_that_lists_the_modes(self) -> None:
        with pytest.raises(ConfigError, match="fast, one-shot, agentic"):
            choose_backend(WebConfig(), {PARALLEL: "key", "PARALLEL_SEARCH_MODE": "slow"}, SEARCH)

    def test_mode_is_read_only_for_parallel(self) -> None:
        choice = choose_backend(WebConfig(), {TAVILY: "key", "PARALLEL_SEARCH_MODE": "slow"}, SEARCH)
        assert choice.name == "tavily"


class TestAddresses:
    @pytest.mark.parametrize(
        "url",
        [
            *("crawler", "ftp://crawler", "http://", "http://user:password@crawler", "http://crawler:99999"),
            *("http://crawler?x=1", "http://crawler#x", "http://crawl\ner", "http://crawlér"),
        ],
    )
    def test_invalid_address_is_an_error_that_does_not_quote_it(self, url: str) -> None:
        with pytest.raises(ConfigError, match="address of firecrawl is not valid") as caught:
            choose_backend(WebConfig(firecrawl_url=url), {}, SEARCH)
        assert "password@" not in str(caught.value)

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "10.1.2.3", "192.168.1.1:3002", "[::1]:80", "a.local"])
    def test_key_goes_unencrypted_to_private_hosts_only(self, host: str) -> None:
        choice = choose_backend(WebConfig(firecrawl_url=f"http://{host}"), {FIRECRAWL: "key"}, SEARCH)
        assert choice.api_key == "key"

    @pytest.mark.parametrize("host", ["crawler.example.com", "8.8.8.8", "crawler", "0x7f.1"])
    def test_key_does_not_go_unencrypted_to_other_hosts(self, host: str) -> None:
        with pytest.raises(ConfigError, match="over http"):
            choose_backend(WebConfig(firecrawl_url=f"http://{host}"), {FIRECRAWL: "key"}, SEARCH)

    @pytest.mark.parametrize("key", ["xyz abc", "xyz\r\nX-Evil: 1", "schlüssel", "a\x00b"])
    def test_key_that_no_header_can_carry_is_an_error_that_does_not_quote_it(self, key: str) -> None:
        with pytest.raises(ConfigError, match=TAVILY) as caught:
            choose_backend(WebConfig(), {TAVILY: key}, SEARCH)
        assert key not in str(caught.value)

    def test_blanks_around_a_key_are_removed(self) -> None:
        assert choose_backend(WebConfig(), {TAVILY: " key\n"}, SEARCH).api_key == "key"


def test_key_is_not_part_of_the_representation() -> None:
    assert "squeamish" not in repr(choose_backend(WebConfig(), {TAVILY: "squeamish"}, SEARCH))
