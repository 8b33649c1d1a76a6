"""Endless answers: the first part is kept, the rest is refused, and memory stays small."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes.agent.conversation import Conversation
from hermes.agent.models.choice import ModelChoice
from hermes.agent.models.http import answer, reply_builder
from hermes.agent.models.http.endpoint import Endpoint
from hermes.agent.models.model import Cancellation
from hermes.agent.models.model_list import MAX_NAMES, list_models
from hermes.config import TimeoutsConfig
from hermes.errors import AnswerCut, ModelGarbled, ModelRefused, ModelTimeout
from hermes.state.owner import EVERYBODY
from hermes_state import SessionDB
from tests.agent.asking import ask, endpoint
from tests.agent.talking import agent_with
from tests.support.modelserver import Fail, ModelServer, Raw, Say
from tests.support.waiting import LIMIT_S

SRC = Path(__file__).parents[2] / "src"
ASKING = """
import sys
from hermes.agent.models.model import Cancellation
from hermes.agent.models.choice import ModelChoice
from hermes.agent.models.http.endpoint import Endpoint
from hermes.agent.models.model_list import list_models
from hermes.agent.models.http.retry import RetryPolicy
from hermes.errors import ModelError

def peak_mb():
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024

import httpx2, difflib
choice = ModelChoice("custom", "m", sys.argv[1])
before = peak_mb()
if sys.argv[2] == "models":
    print(list_models(choice, 60, Cancellation()))
else:
    try:
        model = Endpoint(choice, policy=RetryPolicy(attempts=1))
        for event in model.stream([{"role": "user", "content": "hi"}], [], Cancellation()):
            pass
    except ModelError as error:
        print(type(error).__name__, error.message)
print(peak_mb() - before)
"""
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
MB = 1024 * 1024


def event(delta: object) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": delta}]}).encode() + b"\n\n"


@contextmanager
def flood(head: bytes, piece: bytes, total: int = 300 * MB) -> Iterator[str]:
    """A server that sends the head and then repeats the piece until the client leaves."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(LIMIT_S)
            connection.recv(65_536)
            try:
                connection.sendall(head)
                for _ in range(total // len(piece)):
                    connection.sendall(piece)
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(LIMIT_S)
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


class TestFlood:
    @pytest.mark.parametrize(
        ("head", "piece", "expected"),
        [
            (STREAM, event({"content": "x" * 60_000}), "AnswerCut the answer was cut off: the answer has more than"),
            (STREAM, event({"reasoning": "x" * 60_000}), "AnswerCut the answer was cut off: the answer has more than"),
            (
                STREAM,
                event({"tool_calls": [{"index": 0, "function": {"name": "a", "arguments": "x" * 60_000}}]}),
                "ModelGarbled the answer has more than 2097152 characters of arguments",
            ),
            (STREAM, b": nothing but comments\n" * 3_000, "ModelGarbled the answer of"),
            (STREAM, b"data: " + b"x" * 60_000, "ModelGarbled the answer has an event of more than 2097152 bytes"),
            (STREAM, b"data:\n" * 10_000, "ModelGarbled the answer has an event of more than 2097152 bytes"),
            (STREAM.replace(b"text/event-stream", b"application/json"), b" " * 65_536, "ModelGarbled the answer of"),
            (STREAM.replace(b"200 OK", b"400 Bad Request"), b"x" * 65_536, "ModelRefused"),
            (STREAM.replace(b"200 OK", b"302 Found"), b"x" * 65_536, "ModelRefused"),
        ],
        ids=["content", "reasoning", "arguments", "comments", "line", "event", "whole", "refusal", "redirect"],
    )
    def test_flood_of_300_mb_ends_with_an_error_and_little_memory(
        self, head: bytes, piece: bytes, expected: str
    ) -> None:
        with flood(head, piece) as base_url:
            output, grown = _ask_in_own_process(base_url, "answer")
        assert output.startswith(expected)
        assert grown < 60

    def test_flood_instead_of_a_model_list_gives_no_list(self) -> None:
        head = STREAM.replace(b"text/event-stream", b"application/json")
        with flood(head, b'{"id": "model"},' * 4_000) as base_url:
            output, grown = _ask_in_own_process(base_url, "models")
        assert output == "None"
        assert grown < 60

    def test_compressed_flood_is_never_unpacked(self) -> None:
        bomb = gzip.compress(b"x" * 200 * MB)
        with flood(STREAM.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"), bomb, len(bomb)) as base_url:
            output, grown = _ask_in_own_process(base_url, "answer")
        assert output.startswith("ModelGarbled")
        assert "compressed answer (gzip)" in output
        assert grown < 60


class TestTimeLimitDuringFlood:
    """Time limits apply even while more data arrives than can be read."""

    def test_flood_that_never_begins_an_answer_times_out(self) -> None:
        limits = TimeoutsConfig(first_token_s=0.3)
        with flood(STREAM, b": x\n\n" * 5_000) as base_url:
            error = ask(Endpoint(ModelChoice("custom", "m", base_url), timeouts=limits)).error
        assert isinstance(error, ModelTimeout)
        assert "did not start to answer within 0.3 s" in error.message

    def test_flood_that_never_ends_times_out(self) -> None:
        with flood(STREAM, event({"content": "x"}) * 1_000) as base_url:
            error = ask(Endpoint(ModelChoice("custom", "m", base_url), timeouts=TimeoutsConfig(total_s=0.3))).error
        assert isinstance(error, AnswerCut)
        assert "did not finish within 0.3 s" in error.message

    def test_flood_after_the_last_word_is_ignored(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(answer, "FINISH_WAIT_S", 0.05)
        last = b'data: {"choices": [{"delta": {"content": "Hello."}, "finish_reason": "stop"}]}\n\n'
        with flood(STREAM + last, b": x\n\n" * 5_000) as base_url:
            assert ask(Endpoint(ModelChoice("custom", "m", base_url))).reply.text == "Hello."

    def test_answer_with_a_finish_reason_on_every_piece_is_read_to_its_end(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(answer, "FINISH_WAIT_S", 0.6)

        def pieces() -> Iterator[bytes]:
            for _ in range(8):
                yield b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}\n\n'
                threading.Event().wait(0.1)

        with ModelServer(Raw(pieces())) as server:  # type: ignore[arg-type]
            assert ask(endpoint(server)).reply.text == "a" * 8


def test_sender_waits_for_a_slow_listener() -> None:
    is_all_sent = threading.Event()

    def chunks() -> Iterator[bytes]:
        for _ in range(1_000):  # more than all buffers of a connection hold
            yield event({"content": "x" * 60_000})
        is_all_sent.set()

    with ModelServer(Raw(chunks())) as server:  # type: ignore[arg-type]
        stream = endpoint(server).stream([{"role": "user", "content": "hi"}], [], Cancellation())
        next(iter(stream))
        assert not is_all_sent.wait(1.0)
        getattr(stream, "close")()  # noqa: B009


class TestKept:
    def test_reconsidered_reasoning_has_the_same_limit(
        self, home: Path, store: SessionDB, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reply_builder, "MAX_TEXT_CHARACTERS", 20)
        with ModelServer(Say(pieces=["fifteen letters", "</think>"] * 3)) as server:
            received = ask(endpoint(server))
        assert isinstance(received.error, AnswerCut)
        assert "more than 20 characters of reasoning" in received.error.message

    @pytest.mark.parametrize("claimed", ["partial", "interrupted", "cut"])
    def test_internal_finish_reasons_of_an_endpoint_are_ignored(
        self, home: Path, store: SessionDB, claimed: str
    ) -> None:
        chunk = {"choices": [{"delta": {"content": "all of it"}, "finish_reason": claimed}]}
        with ModelServer(Raw([f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()])) as server:
            conversation = Conversation.start(agent_with(endpoint(server), store, home), asker=EVERYBODY)
            conversation.say("tell me")
        stored = store.get_messages(conversation.session_id)[-1]
        assert (stored["content"], stored["finish_reason"]) == ("all of it", None)

    def test_part_of_a_too_long_answer_is_stored_and_marked_as_cut(
        self, home: Path, store: SessionDB, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reply_builder, "MAX_TEXT_CHARACTERS", 20)
        with ModelServer(Say("one two three four five six seven")) as server:
            conversation = Conversation.start(agent_with(endpoint(server), store, home), asker=EVERYBODY)
            outcome = conversation.say("count")
        stored = store.get_messages(conversation.session_id)[-1]
        assert isinstance(outcome.error, AnswerCut)
        assert "more than 20 characters" in outcome.error.message
        assert (stored["content"], stored["finish_reason"]) == ("one two three four ", "cut")

    @pytest.mark.parametrize(
        ("limit", "make"),
        [
            ("MAX_CALLS", lambda n: {"tool_calls": [{"index": n, "id": f"c{n}", "function": {"name": "a"}}]}),
            ("MAX_ARGUMENT_CHARACTERS", lambda n: {"tool_calls": [{"index": 0, "function": {"arguments": "xx"}}]}),
        ],
    )
    def test_too_many_calls_are_refused(
        self, limit: str, make: Callable[[int], object], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reply_builder, limit, 10)
        with ModelServer(Raw([event(make(number)) for number in range(20)])) as server:
            assert isinstance(ask(endpoint(server)).error, ModelGarbled)

    def test_total_size_is_limited_for_any_content(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(answer, "MAX_BYTES", 10_000)
        with ModelServer(Raw([b": comment\n\n"] * 2_000)) as server:
            error = ask(endpoint(server)).error
        assert isinstance(error, ModelGarbled)
        assert "more than 10000 bytes" in error.message


class TestRequests:
    def test_request_asks_for_no_compression(self) -> None:
        with ModelServer() as server:
            ask(endpoint(server))
            list_models(ModelChoice("custom", "m", server.base_url), 10, Cancellation())
        assert [each.headers["accept-encoding"] for each in server.visits] == ["identity", "identity"]

    def test_very_long_model_list_is_cut(self) -> None:
        with ModelServer(models=[f"model-{number}" for number in range(5_000)]) as server:
            names = list_models(ModelChoice("custom", "m", server.base_url), 10, Cancellation())
        assert names is not None
        assert len(names) == MAX_NAMES

    def test_redirect_does_not_forward_the_key(self) -> None:
        with ModelServer() as other:
            moved = Fail(302, headers={"Location": f"{other.base_url}/chat/completions"})
            with ModelServer(moved) as server:
                choice = ModelChoice("custom", "m", server.base_url, "sk-mine", "MY_KEY")
                assert isinstance(ask(endpoint(server, choice=choice)).error, ModelRefused)
        assert other.visits == []


def _ask_in_own_process(base_url: str, what: str) -> tuple[str, float]:
    """Ask an endpoint in a new process; return its output and the growth of its memory in MB."""
    done = subprocess.run(
        [sys.executable, "-c", ASKING, base_url, what],
        env={"PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    output, grown = done.stdout.rstrip().rsplit("\n", 1)
    return output, float(grown)
