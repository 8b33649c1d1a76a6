"""Time limits and cancellation of calls, and connections."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from hermes.agent.models.choice import ModelChoice
from hermes.agent.models.http.answer import AnswerStream
from hermes.agent.models.http.endpoint import Endpoint
from hermes.agent.models.http.retry import RetryPolicy
from hermes.agent.models.model import Cancellation, Model, TextDelta
from hermes.agent.models.model_list import list_models
from hermes.config import TimeoutsConfig
from hermes.errors import AnswerCut, ModelKeyRefused, ModelTimeout, NoModel
from tests.agent.asking import AT_ONCE, ModelEvents, ask, endpoint, user_message
from tests.fault.processes import Task
from tests.support.conversations import at_once
from tests.support.modelserver import Fail, ModelServer, Say
from tests.support.waiting import LIMIT_S, wait_until

SRC = Path(__file__).parents[2] / "src"
INTERRUPTED = """
import sys
from hermes.agent.models.choice import ModelChoice
from hermes.agent.models.http.endpoint import Endpoint
from hermes.agent.models.model import Cancellation
try:
    model = Endpoint(ModelChoice("custom", "m", sys.argv[1]))
    for event in model.stream([{"role": "user", "content": "hi"}], [], Cancellation()):
        print(event.text, flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
sys.stdin.read()
"""
FOREVER_S = 300.0


def hasty(**limits: float) -> TimeoutsConfig:
    return TimeoutsConfig(**{"connect_s": 5, "first_token_s": 20, "between_tokens_s": 20, "total_s": 40} | limits)


class TestTimeouts:
    @pytest.mark.parametrize("slow", [Say("x", before_s=FOREVER_S), Say("x", first_s=FOREVER_S)])
    def test_wait_for_the_first_token_is_limited(self, slow: Say) -> None:
        with ModelServer(slow) as server:
            error = ask(endpoint(server, timeouts=hasty(first_token_s=0.1))).error
            assert isinstance(error, ModelTimeout)
            assert error.message == f"127.0.0.1:{server.port} did not start to answer within 0.1 s"
            assert server.requests[0].hung_up.wait(LIMIT_S)
        assert len(server.requests) == 1

    def test_silent_model_is_left_with_its_text_so_far(self) -> None:
        with ModelServer(Say("Once upon", between_s=FOREVER_S)) as server:
            received = ask(endpoint(server, timeouts=hasty(between_tokens_s=0.1)))
        assert received.pieces == ["Once "]
        assert isinstance(received.error, AnswerCut)
        assert "sent nothing more for 0.1 s" in received.error.message

    def test_total_time_is_limited(self) -> None:
        with ModelServer(Say("word " * 1_000, between_s=0.02)) as server:
            received = ask(endpoint(server, timeouts=hasty(total_s=0.8)))
        assert 0 < len(received.pieces) < 1_000
        assert isinstance(received.error, AnswerCut)
        assert "did not finish within 0.8 s" in received.error.message

    def test_stream_open_after_the_last_word_is_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("hermes.agent.models.http.answer.FINISH_WAIT_S", 0.05)
        with ModelServer(Say("Hello.", after_s=FOREVER_S)) as server:
            reply = ask(endpoint(server)).reply
        assert (reply.text, reply.finish_reason, reply.usage) == ("Hello.", "stop", None)

    def test_wait_for_the_body_of_a_refusal_is_limited(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("hermes.agent.models.http.answer.REFUSAL_S", 0.05)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            serving = Task(lambda: _refuse_halfway(listener))
            port = listener.getsockname()[1]
            choice = ModelChoice("custom", "m", f"http://127.0.0.1:{port}/v1", "k", "MY_KEY")
            assert isinstance(ask(Endpoint(choice, policy=AT_ONCE)).error, ModelKeyRefused)
            serving.result()


class TestCancellation:
    @pytest.mark.parametrize(
        ("slow", "pieces"),
        [
            (Say("Once upon", before_s=FOREVER_S), []),
            (Say("Once upon", first_s=FOREVER_S), []),
            (Say("Once upon", between_s=FOREVER_S), ["Once "]),
            (Say("Once", stream=False, before_s=FOREVER_S), []),
            (Fail(500, before_s=FOREVER_S), []),
        ],
    )
    def test_cancel_from_another_thread_ends_a_waiting_call(self, slow: Say | Fail, pieces: list[str]) -> None:
        cancellation, received = Cancellation(), ModelEvents()
        with ModelServer(slow) as server:
            asking = Task(lambda: _listen(endpoint(server), cancellation, received))
            wait_until(lambda: len(server.requests) == 1 and received.pieces == pieces, "no request")
            cancellation.cancel()
            asking.result()
            assert server.requests[0].hung_up.wait(LIMIT_S)
        assert (received.pieces, received.has_reply) == (pieces, False)
        wait_until(lambda: not _carriers(), "the thread of the call goes on")
        assert cancellation._callbacks == []

    def test_cancel_ends_a_call_on_a_reused_connection(self) -> None:
        cancellation, received = Cancellation(), ModelEvents()
        with ModelServer(Say("x"), Say("Once upon", between_s=FOREVER_S)) as server:
            model = endpoint(server)
            ask(model)
            asking = Task(lambda: _listen(model, cancellation, received))
            wait_until(lambda: received.pieces == ["Once "], "nothing is said")
            cancellation.cancel()
            asking.result()
            assert server.requests[1].hung_up.wait(LIMIT_S)
        assert server.requests[0].port == server.requests[1].port

    def test_cancel_ends_a_call_before_the_answer_begins(self) -> None:
        cancellation, received = Cancellation(), ModelEvents()
        with ModelServer(Say("x"), Say("Once upon", before_s=FOREVER_S)) as server:
            model = endpoint(server)
            ask(model)
            asking = Task(lambda: _listen(model, cancellation, received))
            wait_until(lambda: len(server.requests) == 2, "no request")
            cancellation.cancel()
            asking.result()
            assert ask(model).reply.text == "You said: hi"
        assert received == ModelEvents()

    def test_cancel_during_a_refusal_ends_the_call_without_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        listening, words, cancellation = threading.Event(), AnswerStream._error_body, Cancellation()

        def listen(answer: AnswerStream) -> bytes:
            listening.set()
            return words(answer)

        monkeypatch.setattr(AnswerStream, "_error_body", listen)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            serving = Task(lambda: _refuse_halfway(listener))
            choice = ModelChoice("custom", "m", f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
            asking = Task(lambda: ask(Endpoint(choice), cancellation=cancellation))
            assert listening.wait(LIMIT_S)
            cancellation.cancel()
            assert asking.result() == ModelEvents()
            serving.result()

    def test_cancel_ends_the_wait_before_a_retry(self) -> None:
        cancellation = Cancellation()
        policy = RetryPolicy(base_s=FOREVER_S, longest_s=FOREVER_S, budget_s=FOREVER_S * 10)
        received = ModelEvents()
        with ModelServer(Fail(503)) as server:
            model = endpoint(server, policy=policy, random=lambda: 1.0)
            asking = Task(lambda: _listen(model, cancellation, received))
            wait_until(lambda: bool(received.waits and cancellation._callbacks), "no callback registered")
            cancellation.cancel()
            asking.result()
        assert (len(received.events), len(server.requests)) == (1, 1)

    def test_cancelled_call_sends_no_request(self) -> None:
        cancellation = Cancellation()
        cancellation.cancel()
        with ModelServer() as server:
            assert ask(endpoint(server), cancellation=cancellation) == ModelEvents()
        assert server.visits == []

    def test_closing_the_stream_closes_the_connection(self) -> None:
        with ModelServer(Say("Once upon", between_s=FOREVER_S)) as server:
            stream = endpoint(server).stream(user_message("hi"), [], Cancellation())
            assert isinstance(stream, Generator)
            assert next(stream) == TextDelta("Once ")
            stream.close()
            assert server.requests[0].hung_up.wait(LIMIT_S)

    def test_cancelled_call_does_not_affect_others(self) -> None:
        cancellation, stopped = Cancellation(), ModelEvents()
        with ModelServer(Say("x"), Say("Once upon", between_s=FOREVER_S), Say("a b c", between_s=0.05)) as server:
            model = endpoint(server)
            ask(model)
            first = Task(lambda: _listen(model, cancellation, stopped))
            wait_until(lambda: stopped.pieces == ["Once "], "the first says nothing")
            second = Task(lambda: ask(model))
            wait_until(lambda: len(server.requests) == 3, "the second is not asked")
            cancellation.cancel()
            first.result()
            received = second.result()
        assert isinstance(received, ModelEvents)
        assert received.reply.text == "a b c"

    def test_ctrl_c_closes_the_connection_and_is_raised(self) -> None:
        with ModelServer(Say("Once upon", between_s=FOREVER_S)) as server:
            process = subprocess.Popen(
                [sys.executable, "-c", INTERRUPTED, server.base_url],
                env={"PYTHONPATH": str(SRC)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "Once \n"
                process.send_signal(signal.SIGINT)
                assert process.stdout.readline() == "interrupted\n"
                assert server.requests[0].hung_up.wait(LIMIT_S)
                process.communicate(timeout=LIMIT_S)
            finally:
                process.kill()
                process.communicate()
        assert process.returncode == 0


class TestConnections:
    def test_plain_http_does_not_read_the_trusted_certificates(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def read(**_: object) -> None:
            raise AssertionError("the trusted certificates were read")

        monkeypatch.setattr("httpcore2.default_ssl_context", read)
        with ModelServer() as server:
            assert ask(endpoint(server)).reply.text == "You said: hi"

    def test_proxy_is_not_used_for_this_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        with ModelServer() as server:
            assert ask(endpoint(server)).reply.text == "You said: hi"

    @pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
    def test_proxy_is_not_used_for_plain_http(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        with ModelServer() as server, ModelServer() as proxy:
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            choice = ModelChoice("custom", "m", f"http://[::ffff:127.0.0.1]:{server.port}/v1", "sk-secret-1", "MY_KEY")
            assert ask(endpoint(server, choice=choice)).reply.text == "You said: hi"
            assert list_models(choice, LIMIT_S, Cancellation()) is not None
        assert proxy.visits == []

    def test_proxy_is_used_for_plain_http_if_allowed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with ModelServer() as server:
            for name in ("HTTP_PROXY", "http_proxy"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{server.port}")
            choice = ModelChoice("custom", "m", "http://models.invalid/v1", allow_http=True)
            assert ask(endpoint(server, choice=choice)).reply.text == "You said: hi"
        assert server.requests[0].path == "http://models.invalid/v1/chat/completions"

    def test_unusable_proxy_is_an_error_without_its_password(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ALL_PROXY", "gopher://ada:pa55word@127.0.0.1:9")
        error = ask(Endpoint(ModelChoice("custom", "m", "http://other.invalid/v1", allow_http=True))).error
        assert isinstance(error, NoModel)
        assert "the proxy or the certificates" in error.message
        assert "pa55word" not in str(error)

    def test_many_calls_at_once_share_a_client(self) -> None:
        with ModelServer() as server:
            model = endpoint(server)
            received = at_once(8, lambda number: ask(model, f"call {number}"))
        assert [each.reply.text for each in received] == [f"You said: call {number}" for number in range(8)]


def _listen(model: Model, cancellation: Cancellation, received: ModelEvents) -> None:
    """Collect events on another thread while they arrive."""
    for event in model.stream(user_message("hi"), [], cancellation):
        received.events.append(event)


def _carriers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "hermes-model"]


def _refuse_halfway(listener: socket.socket) -> None:
    """Send a status and half of its body, and wait until the client leaves."""
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(LIMIT_S)
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 1000\r\n\r\n{")
        while connection.recv(65_536):
            pass
