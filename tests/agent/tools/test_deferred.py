"""Permissions that the operator gives later: no thread waits, and the call runs with exactly what was shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.agent import Agent
from hermes.agent.conversation import Conversation
from hermes.agent.models.model import ToolCall
from hermes.agent.safety.approval import ApprovalDeferred, ApprovalRequest, ConversationOrigin, Decision, Grant
from hermes.agent.tools.toolbox import TOOLBOX
from hermes.agent.turns.incoming import Incoming
from hermes.config import ApprovalsConfig, Config
from hermes.errors import InvalidValue
from hermes.state.owner import owner_of
from hermes.state.provider import SessionDBProvider
from tests.agent.talking import agent_at
from tests.support.modelserver import Call, ModelServer, Say

ME = owner_of("telegram", "1")
CONFIG = Config(tools={"telegram": ("terminal", "files")})
MAKE = '{"command":  "echo hi > made"}'


class Operator:
    """Records the requests and decides later."""

    def __init__(self) -> None:
        self.asked: list[tuple[ApprovalRequest, ConversationOrigin]] = []

    def __call__(self, request: ApprovalRequest, origin: ConversationOrigin) -> Decision:
        self.asked.append((request, origin))
        raise ApprovalDeferred("k7m2qx", request.summary)

    def grant(self, scope: Decision = Decision.ONCE) -> tuple[ToolCall, Grant]:
        """The last request, allowed."""
        request, origin = self.asked[-1]
        assert origin.call is not None
        return origin.call, Grant(request.subject, request.detail, origin.directory, scope)


@pytest.fixture
def operator() -> Operator:
    return Operator()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The directory of a chat."""
    work = tmp_path / "owners" / "one"
    work.mkdir(parents=True)
    return work


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "hermes"
    home.mkdir(mode=0o700)
    return home


def agent_of(server: ModelServer, store: SessionDBProvider, home: Path, operator: Operator) -> Agent:
    return agent_at(server, store, home, CONFIG, tools=TOOLBOX, operator=operator)


def ask(
    store: SessionDBProvider, home: Path, work: Path, operator: Operator, *calls: Call
) -> tuple[Conversation, list[str]]:
    """A chat in which the model calls tools; returns the results that it got, too."""
    with ModelServer(*(Say(calls=[each]) for each in calls), Say("I wait.")) as server:
        agent = agent_of(server, store, home, operator)
        conversation = Conversation.start(agent, "telegram", asker=ME, user_id="1", cwd=str(work))
        assert conversation.answer([Incoming("go", "u0")]).text == "I wait."
        results = [str(each["content"]) for each in server.requests[-1].messages if each["role"] == "tool"]
    return conversation, results


class TestDeferral:
    def test_model_learns_that_it_must_not_wait(
        self, store: SessionDBProvider, home: Path, work: Path, operator: Operator
    ) -> None:
        conversation, (result,) = ask(store, home, work, operator, Call("terminal", MAKE))
        assert "requested as k7m2qx" in result
        assert "Do not wait" in result
        assert "error" not in result
        assert not (work / "made").exists()
        assert operator.asked[0][1] == ConversationOrigin(
            conversation.session_id, "telegram", ME, ToolCall("call_1", "terminal", MAKE), str(work)
        )

    def test_repeated_call_is_asked_about_each_time(
        self, store: SessionDBProvider, home: Path, work: Path, operator: Operator
    ) -> None:
        _, results = ask(store, home, work, operator, Call("terminal", MAKE), Call("terminal", MAKE, id="call_2"))
        assert results[0] == results[1]
        assert len(operator.asked) == 2


class TestApprovedRun:
    def test_call_runs_once_with_its_exact_arguments(
        self, store: SessionDBProvider, home: Path, work: Path, operator: Operator
    ) -> None:
        conversation, _ = ask(store, home, work, operator, Call("terminal", MAKE))
        rows = store.message_count(conversation.session_id)
        result = conversation.run_approved(*operator.grant())
        assert (result.is_error, "exit code 0" in result.text) == (False, True)
        assert (work / "made").read_text() == "hi\n"
        assert store.message_count(conversation.session_id) == rows
        assert len(operator.asked) == 1

    def test_permission_survives_a_restart(
        self, store: SessionDBProvider, home: Path, work: Path, operator: Operator
    ) -> None:
        conversation, _ = ask(store, home, work, operator, Call("terminal", MAKE))
        call, grant = operator.grant()
        stored = json.loads(json.dumps([call.name, call.arguments, grant.subject, grant.detail, grant.directory]))
        with ModelServer() as server:
            resumed = Conversation.resume(
                agent_of(server, store, home, operator), conversation.session_id, asker=ME, cwd=str(work)
            )
            resumed.run_approved(ToolCall("again", stored[0], stored[1]), Grant(*stored[2:]))
        assert (work / "made").exists()

    def test_other_arguments_are_refused(
        self, store: SessionDBProvider, home: Path, work: Path, operator: Operator
    ) -> None:
        conversation, _ = ask(store, home, work, operator, Call("terminal", MAKE))
        _, grant = operator.grant()
        other = ToolCall("c", "terminal", '{"command": "echo other > made"}')
        result = conversation.run_approved(other, grant)
        assert (result.is_error, "not what the operator has allowed" in result.text) == (True, True)
        assert not (work / "made").exists()
        assert len(operator.asked) == 1

    def test_link_that_was_changed_after_the_request_is_refused(
        self, store: SessionDBProvider, home: Path, work: Path, operator: Operator, tmp_path: Path
    ) -> None:
        for name in ("shown", "other"):
            (tmp_path / name).write_text(f"the text of {name}")
        (work / "link").symlink_to(tmp_path / "shown")
        conversation, _ = ask(store, home, work, operator, Call("read_file", {"path": "link"}))
        assert "the text of shown" in conversation.run_approved(*operator.grant()).text
        (work / "link").unlink()
        (work / "link").symlink_to(tmp_path / "other")
        assert "the text of" not in conversation.run_approved(*operator.grant()).text

    def test_directory_is_the_one_of_the_request(
        self, store: SessionDBProvider, home: Path, work: Path, operator: Operator
    ) -> None:
        (work / "sub").mkdir()
        into = Call("terminal", {"command": "ls", "cwd": "sub"})
        conversation, _ = ask(store, home, work, operator, into, Call("terminal", MAKE, id="call_2"))
        assert operator.grant()[1].directory == str(work / "sub")
        with ModelServer() as server:
            resumed = Conversation.resume(
                agent_of(server, store, home, operator), conversation.session_id, asker=ME, cwd=str(work)
            )
            resumed.run_approved(*operator.grant())
        assert (work / "sub" / "made").exists()

    @pytest.mark.parametrize(
        ("scope", "in_session", "later"),
        [(Decision.ONCE, True, True), (Decision.SESSION, False, True), (Decision.ALWAYS, False, False)],
    )
    def test_scope_covers_later_requests(
        self,
        scope: Decision,
        in_session: bool,
        later: bool,
        store: SessionDBProvider,
        home: Path,
        work: Path,
        operator: Operator,
    ) -> None:
        conversation, _ = ask(store, home, work, operator, Call("terminal", MAKE))
        conversation.run_approved(*operator.grant(scope))
        call = Call("terminal", MAKE, id="call_9")
        with ModelServer(Say(calls=[call]), Say("ok"), Say(calls=[call]), Say("ok")) as server:
            agent = conversation.agent
            conversation.use(agent_of(server, store, home, operator).model)
            asked = len(operator.asked)
            conversation.answer([Incoming("again", "u1")])
            assert (len(operator.asked) > asked) == in_session
            agent = agent_of(server, store, home, operator)
            asked = len(operator.asked)
            other = Conversation.start(agent, "telegram", asker=ME, user_id="1", cwd=str(work))
            other.answer([Incoming("again", "u2")])
            assert (len(operator.asked) > asked) == later

    def test_platform_that_is_denied_meanwhile_is_refused(
        self, store: SessionDBProvider, home: Path, work: Path, operator: Operator
    ) -> None:
        conversation, _ = ask(store, home, work, operator, Call("terminal", MAKE))
        config = replace(CONFIG, approvals=ApprovalsConfig(sources={"telegram": "deny"}))
        with ModelServer() as server:
            agent = agent_at(server, store, home, config, tools=TOOLBOX, operator=operator)
            resumed = Conversation.resume(agent, conversation.session_id, asker=ME, cwd=str(work))
            assert resumed.run_approved(*operator.grant()).is_error
        assert not (work / "made").exists()

    def test_toolset_that_is_off_meanwhile_is_refused(
        self, store: SessionDBProvider, home: Path, work: Path, operator: Operator
    ) -> None:
        conversation, _ = ask(store, home, work, operator, Call("terminal", MAKE))
        with ModelServer() as server:
            agent = agent_at(server, store, home, Config(), tools=TOOLBOX, operator=operator)
            resumed = Conversation.resume(agent, conversation.session_id, asker=ME, cwd=str(work))
            assert "there is no tool" in resumed.run_approved(*operator.grant()).text
        assert not (work / "made").exists()

    def test_denied_request_gives_no_permission(self) -> None:
        with pytest.raises(InvalidValue):
            Grant("make", "make", scope=Decision.DENY)
