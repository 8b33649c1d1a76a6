"""Approval on chat platforms, where the operator decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.agent.safety.approval import ApprovalRequest, Approvals, ConversationOrigin, Decision
from hermes.agent.safety.permits import Permits
from hermes.config import ChatMode, Mode, load_config
from hermes.errors import ConfigError
from hermes.state.owner import TERMINAL, owner_of
from tests.agent.tools.approving import command, refusal
from tests.agent.tools.workbench import Person, Workbench


class TestChats:
    """On chat platforms the operator decides."""

    CHAT = ConversationOrigin("s", "telegram", owner_of("telegram", "1"))

    def test_mode_allow_applies_only_to_the_terminal(self, permits: Permits) -> None:
        approvals = Approvals("allow", permits)
        reason = approvals.refusal(command("make"), self.CHAT, None)
        assert reason is not None
        assert "the operator, who cannot be asked" in reason
        assert "approvals.mode" not in reason

    @pytest.mark.parametrize("mode", ["ask", "allow"])
    def test_chat_user_does_not_decide(self, permits: Permits, mode: Mode) -> None:
        stranger = Person(Decision.ONCE)
        assert Approvals(mode, permits).refusal(command("make"), self.CHAT, stranger) is not None
        assert stranger.asked == []

    def test_operator_decides_and_sees_the_origin(self, permits: Permits) -> None:
        asked: list[tuple[str, ConversationOrigin]] = []

        def operator(request: ApprovalRequest, origin: ConversationOrigin) -> Decision:
            asked.append((request.subject, origin))
            return Decision.ONCE

        stranger = Person(Decision.DENY)
        approvals = Approvals("deny", permits, operator=operator)
        assert approvals.refusal(command("make"), self.CHAT, stranger) is None
        assert asked == [("make", self.CHAT)]
        assert stranger.asked == []

    def test_denial_by_the_operator_is_respected(self, permits: Permits) -> None:
        approvals = Approvals("allow", permits, operator=lambda *_: Decision.DENY)
        assert approvals.refusal(command("make"), self.CHAT, Person(Decision.ONCE)) is not None

    def test_operator_is_not_asked_for_the_terminal(self, permits: Permits) -> None:
        approvals = Approvals("ask", permits, operator=lambda *_: Decision.ONCE)
        assert refusal(approvals, command("make"), None) is not None

    def test_single_platform_can_be_denied(self, permits: Permits) -> None:
        approvals = Approvals("ask", permits, chat_modes={"telegram": "deny"}, operator=lambda *_: Decision.ONCE)
        reason = approvals.refusal(command("make"), self.CHAT, None)
        assert reason is not None
        assert "approvals.sources.telegram is deny" in reason
        assert (
            approvals.refusal(command("make"), ConversationOrigin("s", "slack", owner_of("slack", "1")), None) is None
        )

    def test_platform_names_ignore_case(self, permits: Permits) -> None:
        modes: dict[str, ChatMode] = {"Telegram": "deny", "telegram": "ask"}
        approvals = Approvals("ask", permits, chat_modes=modes, operator=lambda *_: Decision.ONCE)
        assert approvals.refusal(command("make"), self.CHAT, None) is not None

    def test_permission_of_the_terminal_does_not_apply_in_a_chat(self, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.ALWAYS), session_id="terminal")
        assert approvals.refusal(command("make"), self.CHAT, None) is not None
        assert approvals.refusal(command("make"), ConversationOrigin("s", "telegram", TERMINAL), None) is not None

    def test_always_without_an_owner_is_not_stored_for_the_terminal(self, permits: Permits) -> None:
        approvals = Approvals("ask", permits, operator=lambda *_: Decision.ALWAYS)
        assert approvals.refusal(command("make"), ConversationOrigin("s", "telegram", TERMINAL), None) is None
        assert permits.of(TERMINAL) == []

    @pytest.mark.parametrize("source", ["telegram", "default", "CLI", "terminal", ""])
    def test_every_other_source_than_the_terminal_is_a_chat(self, permits: Permits, source: str) -> None:
        assert (
            Approvals("allow", permits).refusal(
                command("make"), ConversationOrigin("s", source, owner_of("x", "1")), None
            )
            is not None
        )

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("approvals: {sources: {telegram: allow}}", "`allow` works only in the terminal"),
            ("approvals: {sources: {cli: deny}}", "use approvals.mode for the terminal"),
            ("approvals: {sources: {' CLI ': deny}}", "use approvals.mode for the terminal"),
            ("approvals: {sources: {tui: ask}}", "use approvals.mode for the terminal"),
        ],
    )
    def test_invalid_chat_modes_are_errors(self, tmp_path: Path, permits: Permits, text: str, reason: str) -> None:
        (tmp_path / "config.yaml").write_text(text)
        with pytest.raises(ConfigError, match=reason):
            Approvals("ask", permits, chat_modes=load_config(tmp_path, environ={}).approvals.sources)

    def test_tool_in_a_chat_asks_the_operator(self, bench: Workbench, tmp_path: Path) -> None:
        bench.change(
            source="telegram", owner=owner_of("telegram", "1"), approvals=Approvals("allow", Permits(tmp_path))
        )
        bench.refused("terminal", command="touch here")
        assert bench.person.asked == []
        assert not (bench.work / "here").exists()
