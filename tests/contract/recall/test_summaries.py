"""Summaries of found conversations have a time limit and never replace the results."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.conversations import Row, column, compress, contents, say, start
from tests.support.recall import Summarizer, found, local, recall

WAIT_S = 20.0


@pytest.fixture
def summarizer() -> Summarizer:
    return Summarizer()


@pytest.fixture
def hanging() -> Iterator[Callable[..., str]]:
    """A summarizer that does not return before the test ends."""
    over = threading.Event()

    def summarize(transcript: str, topic: str, metadata: Row) -> str:
        assert over.wait(WAIT_S)
        return "too late"

    yield summarize
    over.set()


@pytest.fixture
def three(store: SessionDBProvider) -> None:
    """Create three sessions about a lantern."""
    for session_id in ("a", "b", "c"):
        start(store, session_id)
        say(store, session_id, "lantern")


def test_there_are_no_summaries_without_a_summarizer(store: SessionDBProvider, three: None) -> None:
    results = recall(store, query="lantern")["results"]
    assert [name for result in results for name in result if name.startswith("summary")] == []


def test_summary_is_added_to_the_messages(store: SessionDBProvider, summarizer: Summarizer) -> None:
    start(store, "s")
    say(store, "s", "lantern")
    (result,) = recall(store, query="lantern", summarize=summarizer)["results"]
    assert (result["summary"], "summary_error" in result) == ("About lantern.", False)
    assert contents(result["messages"]) == ["lantern"]


def test_summarizer_gets_query_and_metadata(store: SessionDBProvider, clock: FakeClock, summarizer: Summarizer) -> None:
    start(store, "s", model="m")
    store.set_session_title("s", "Title")
    say(store, "s", "lantern")
    recall(store, query="lantern OR lamp", summarize=summarizer)
    metadata = {"session_id": "s", "when": local(clock.now), "source": "cli", "model": "m", "title": "Title"}
    assert summarizer.given == [("[USER] lantern", "lantern OR lamp", metadata)]


def test_summarizer_is_given_the_whole_conversation_across_compression(
    store: SessionDBProvider, clock: FakeClock, summarizer: Summarizer
) -> None:
    start(store, "s")
    say(store, "s", "one")
    compress(store, clock, "s", "s2")
    say(store, "s2", "two lantern")
    compress(store, clock, "s2", "s3")
    say(store, "s3", "three")
    recall(store, query="lantern", summarize=summarizer)
    assert summarizer.transcript == "[USER] one\n\n[USER] two lantern\n\n[USER] three"


def test_branch_is_summarized_without_its_siblings(store: SessionDBProvider, summarizer: Summarizer) -> None:
    start(store, "s")
    start(store, "branch", "sibling", parent_session_id="s", child_kind="branch")
    say(store, "branch", "lantern")
    say(store, "sibling", "something else")
    recall(store, query="lantern", summarize=summarizer)
    assert summarizer.transcript == "[USER] lantern"


def test_undone_messages_are_not_summarized(store: SessionDBProvider, summarizer: Summarizer) -> None:
    start(store, "s")
    returned = say(store, "s", "lantern", "gone")
    store.rewind_to_message("s", returned[1])
    recall(store, query="lantern", summarize=summarizer)
    assert summarizer.transcript == "[USER] lantern"


@pytest.mark.parametrize("word", ["lantern", "灯笼"])
def test_long_conversation_is_cut_around_the_matches(
    store: SessionDBProvider, summarizer: Summarizer, word: str
) -> None:
    start(store, "s")
    padding: list[Row] = [{"role": "user", "content": f"{number} is nothing " * 60} for number in range(600)]
    match = {"role": "assistant", "content": f"the {word} is here"}
    store.append_messages("s", [*padding[:300], match, *padding[300:]])
    recall(store, query=word, summarize=summarizer)
    before, _, after = summarizer.transcript.partition(f"the {word} is here")
    assert 100_000 <= len(summarizer.transcript) <= 100_200
    assert 24_000 < len(before) < 26_000
    assert 74_000 < len(after) < 76_000


def test_hanging_summarizer_is_not_waited_for(
    store: SessionDBProvider, three: None, hanging: Callable[..., str]
) -> None:
    began = time.monotonic()
    response = recall(store, query="lantern", summarize=hanging, timeout_s=0.1)
    assert time.monotonic() - began < WAIT_S / 2
    assert sorted(found(response)) == ["a", "b", "c"]
    assert column(response["results"], "summary") == [None] * 3
    assert column(response["results"], "summary_error") == ["the summary was not ready in time"] * 3


@pytest.mark.parametrize("timeout_s", [0, -1, -1e300])
def test_timeout_of_zero_means_no_waiting(
    store: SessionDBProvider, three: None, hanging: Callable[..., str], timeout_s: float
) -> None:
    response = recall(store, query="lantern", summarize=hanging, timeout_s=timeout_s)
    assert column(response["results"], "summary") == [None] * 3


@pytest.mark.parametrize(
    "timeout_s", [None, "soon", True, [], float("nan"), float("inf"), 1e300, 10**400], ids=lambda odd: str(odd)[:9]
)
def test_odd_timeouts_are_harmless(
    store: SessionDBProvider, three: None, summarizer: Summarizer, timeout_s: Any
) -> None:
    response = recall(store, query="lantern", summarize=summarizer, timeout_s=timeout_s)
    assert column(response["results"], "summary") == ["About lantern."] * 3


def test_hanging_summarizer_does_not_stop_the_others(
    store: SessionDBProvider, three: None, hanging: Callable[..., str]
) -> None:
    others = threading.Barrier(2)

    def summarize(transcript: str, topic: str, metadata: Row) -> str:
        if metadata["session_id"] == "b":
            return hanging(transcript, topic, metadata)
        others.wait(WAIT_S)
        return "done"

    response = recall(store, query="lantern", summarize=summarize, timeout_s=2)
    assert {each["session_id"]: each["summary"] for each in response["results"]} == {
        "a": "done",
        "b": None,
        "c": "done",
    }


def test_summaries_run_in_parallel_on_daemon_threads(store: SessionDBProvider, three: None) -> None:
    together = threading.Barrier(3)

    def summarize(transcript: str, topic: str, metadata: Row) -> str:
        together.wait(WAIT_S)
        return f"daemon: {threading.current_thread().daemon}"

    response = recall(store, query="lantern", summarize=summarize)
    assert column(response["results"], "summary") == ["daemon: True"] * 3


@pytest.mark.parametrize("failure", [ValueError("no model"), SystemExit("no model"), KeyboardInterrupt("no model")])
def test_failed_summary_keeps_the_result_and_the_reason(
    store: SessionDBProvider, three: None, failure: BaseException
) -> None:
    def summarize(transcript: str, topic: str, metadata: Row) -> str:
        raise failure

    results = recall(store, query="lantern", summarize=summarize)["results"]
    assert column(results, "summary") == [None] * 3
    assert column(results, "summary_error") == [f"{type(failure).__name__}: no model"] * 3
    assert [contents(result["messages"]) for result in results] == [["lantern"]] * 3


@pytest.mark.parametrize("returned", ["", " \n", None, 5, ["x"]])
def test_empty_summary_is_a_failure(store: SessionDBProvider, three: None, returned: Any) -> None:
    results = recall(store, query="lantern", summarize=lambda *_: returned)["results"]
    assert {(each["summary"], each["summary_error"]) for each in results} == {(None, "the summary is empty")}


def test_summarizer_that_is_not_callable_is_a_failure(store: SessionDBProvider, three: None) -> None:
    results = recall(store, query="lantern", summarize="x")["results"]
    assert all("TypeError" in each["summary_error"] for each in results)


def test_only_shown_results_are_summarized(store: SessionDBProvider, three: None, summarizer: Summarizer) -> None:
    recall(store, query="lantern", limit=2, summarize=summarizer)
    assert len(summarizer.given) == 2
