"""The error codes of a server are translated to retries and errors."""

from __future__ import annotations

import pytest

from hermes.errors import Conflict, HermesError, StoreBusy, StoreError, StoreUnavailable
from hermes.state.server.codes import ErrorCodes
from hermes.state.server.faults import CommitUnknown, ConnectionLost, Fault, ServerError, StatementTimeout, Verdict

CODES = ErrorCodes(
    "the server",
    verdicts={"23505": Verdict.RETRY_NOW, "08": Verdict.RECONNECT},
    kinds={"23": Conflict, "08": StoreUnavailable, "08001": StoreBusy},
    hints={"08": "of the class", "08001": "of the code"},
    class_length=2,
)


class TestVerdict:
    @pytest.mark.parametrize(
        ("fault", "expected"),
        [
            (ConnectionLost("away"), Verdict.RECONNECT),
            (StatementTimeout("late"), Verdict.NEVER),
            (CommitUnknown(None, "who knows"), Verdict.NEVER),
            (ServerError("23505", "twice"), Verdict.RETRY_NOW),
            (ServerError("23502", "null"), Verdict.NEVER),
            (ServerError("08006", "down"), Verdict.RECONNECT),
        ],
    )
    def test_verdict_follows_from_the_code_or_its_class(self, fault: Fault, expected: Verdict) -> None:
        assert CODES.verdict(fault) is expected


class TestTranslation:
    @pytest.mark.parametrize(
        ("fault", "kind", "hint"),
        [
            (ConnectionLost("away"), StoreUnavailable, "check that the server is up, and try again"),
            (StatementTimeout("late"), StoreBusy, StoreBusy("").hint),
            (ServerError("08001", "busy"), StoreBusy, "of the code"),
            (ServerError("08006", "down"), StoreUnavailable, "of the class"),
            (ServerError("23505", "twice"), Conflict, Conflict("").hint),
            (ServerError("99999", "strange"), StoreError, StoreError("").hint),
        ],
    )
    def test_translation_follows_from_the_code_or_its_class(
        self, fault: Fault, kind: type[HermesError], hint: str
    ) -> None:
        translated = CODES.translate(fault, "here")
        assert (type(translated), translated.hint) == (kind, hint)
        assert str(fault) in translated.message

    def test_translation_of_an_unknown_code_shows_the_code(self) -> None:
        assert CODES.translate(ServerError("99999", "strange"), "here").message == (
            "the server failed in here: strange (99999)"
        )

    def test_translation_without_classes_uses_the_whole_code(self) -> None:
        plain = ErrorCodes("the server", {}, {"28": Conflict}, {})
        assert type(plain.translate(ServerError("28", "m"), "here")) is Conflict
        assert type(plain.translate(ServerError("2800", "m"), "here")) is StoreError
