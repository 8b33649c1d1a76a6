"""The file of lasting permissions."""

from __future__ import annotations

import json
import logging
import os
import stat
from pathlib import Path

import pytest

from hermes.agent.memory.owner_files import owner_file_stem
from hermes.agent.safety.approval import Approvals, Decision
from hermes.agent.safety.permits import Permit, Permits
from hermes.errors import ConfigError
from hermes.state.owner import TERMINAL, Owner, owner_of
from tests.agent.tools.approving import command, refusal
from tests.agent.tools.workbench import Person


class TestFile:
    def file(self, home: Path, owner: Owner = TERMINAL) -> Path:
        return home / "approvals" / f"{owner_file_stem(owner)}.json"

    def test_permission_file_is_private_and_readable(self, permits: Permits, tmp_path: Path) -> None:
        permits.add(TERMINAL, Permit("terminal", "make test", "/src/wiki", with_options=True))
        permits.add(TERMINAL, Permit("read_file", "/etc/hosts"))
        file = self.file(tmp_path)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert json.loads(file.read_text()) == {
            "version": 2,
            "allowed": [
                {"tool": "terminal", "text": "make test", "directory": "/src/wiki", "covers": "options"},
                {"tool": "read_file", "text": "/etc/hosts", "covers": "exact"},
            ],
        }

    def test_pipe_allows_nothing_and_is_not_waited_for(self, permits: Permits, tmp_path: Path) -> None:
        file = self.file(tmp_path)
        file.parent.mkdir()
        os.mkfifo(file)
        assert permits.of(TERMINAL) == []
        with pytest.raises(ConfigError, match="it is not a plain file"):
            permits.add(TERMINAL, Permit("terminal", "make"))

    def test_permission_is_not_stored_twice(self, permits: Permits) -> None:
        for _ in range(2):
            permits.add(TERMINAL, Permit("terminal", "make"))
        assert permits.of(TERMINAL) == [Permit("terminal", "make")]

    def test_owners_do_not_share_permissions(self, permits: Permits) -> None:
        permits.add(owner_of("telegram", "1"), Permit("terminal", "make"))
        assert permits.of(owner_of("telegram", "2")) == []
        assert permits.of(TERMINAL) == []

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "null",
            '{"version": 3, "allowed": []}',
            '{"version": 2}',
            '{"version": 2, "allowed": [{"tool": "terminal", "text": "", "covers": "options"}]}',
            '{"version": 2, "allowed": [{"tool": "terminal", "text": "x", "covers": "prefix"}]}',
            '{"version": 2, "allowed": [{"tool": "terminal", "text": 7, "covers": "exact"}]}',
            '{"version": 2, "allowed": [{"tool": "terminal", "text": "x", "directory": "", "covers": "exact"}]}',
            "[" * 100_000,
            "\udcff",
        ],
    )
    def test_invalid_permission_file_allows_nothing_and_stays(
        self, permits: Permits, tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        file = self.file(tmp_path)
        file.parent.mkdir()
        file.write_text(text, errors="surrogateescape")
        with caplog.at_level(logging.WARNING):
            assert permits.of(TERMINAL) == []
        assert "is not a list of permissions" in caplog.text
        with pytest.raises(ConfigError, match="is not a list of permissions"):
            permits.add(TERMINAL, Permit("terminal", "make"))
        assert file.read_text(errors="surrogateescape") == text

    def test_command_permission_without_a_directory_never_applies(self, permits: Permits, approvals: Approvals) -> None:
        permits.add(TERMINAL, Permit("terminal", "make"))
        assert refusal(approvals, command("make"), Person(Decision.DENY)) is not None

    OLD = '{"version": 1, "allowed": [{"tool": "terminal", "text": "make", "covers": "prefix"}]}'

    def test_permission_file_of_an_earlier_version_is_ignored_with_a_note(
        self, approvals: Approvals, tmp_path: Path
    ) -> None:
        file = self.file(tmp_path)
        file.parent.mkdir()
        file.write_text(self.OLD)
        person = Person(Decision.ONCE)
        assert refusal(approvals, command("make", "make"), person) is None
        (request,) = person.asked
        assert request.note == (
            f"The permissions in {file} are ignored: an earlier version wrote the file, without the directories in"
            " which they apply."
        )
        reason = refusal(approvals, command("make", "make"), None)
        assert reason is not None
        assert reason.endswith(request.note)
        assert file.read_text() == self.OLD

    def test_permission_file_of_an_earlier_version_is_kept(self, permits: Permits, tmp_path: Path) -> None:
        file = self.file(tmp_path)
        file.parent.mkdir()
        for name in ("terminal.version-1.json", "terminal.version-1-2.json"):
            file.write_text(self.OLD)
            permits.add(TERMINAL, Permit("terminal", "make", "/src/wiki"))
            assert (file.parent / name).read_text() == self.OLD
            assert permits.of(TERMINAL) == [Permit("terminal", "make", "/src/wiki")]
            assert permits.note(TERMINAL) == ""

    def test_permission_that_cannot_be_stored_lasts_for_the_session(
        self, approvals: Approvals, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "approvals").write_text("a file in the way")
        with caplog.at_level(logging.WARNING):
            assert refusal(approvals, command("make"), Person(Decision.ALWAYS)) is None
        assert "a permission holds for this session only" in caplog.text
        assert refusal(approvals, command("make"), Person(Decision.DENY)) is None
