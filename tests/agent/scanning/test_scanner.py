"""Which Tirith is used, and what a failure means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.safety.scanning.findings import ScanReport
from hermes.agent.safety.scanning.scanner import CommandScanner
from hermes.config import SecurityConfig, load_config
from hermes.errors import ConfigError
from tests.agent.scanning.fake_tirith import fake_tirith, write_program


def scanner_of(home: Path, path: Path | None = None, **settings: Any) -> CommandScanner:
    environ = {"PATH": f"{path}:/usr/bin:/bin" if path else "/usr/bin:/bin"}
    return CommandScanner(SecurityConfig(**settings), home, environ)


class TestFinding:
    def test_program_on_path_comes_before_the_installed_one(self, tmp_path: Path) -> None:
        installed = fake_tirith(tmp_path / "bin" / "tirith", 2)
        assert scanner_of(tmp_path).find() == installed
        on_path = fake_tirith(tmp_path / "programs" / "tirith", 1)
        assert scanner_of(tmp_path, on_path.parent).find() == on_path

    def test_configured_program_is_the_only_one(self, tmp_path: Path) -> None:
        fake_tirith(tmp_path / "programs" / "tirith", 0)
        own = fake_tirith(tmp_path / "own", 1)
        assert scanner_of(tmp_path, tmp_path / "programs", tirith_path=str(own)).scan("ls").verdict == "block"
        missing = scanner_of(tmp_path, tmp_path / "programs", tirith_path=str(tmp_path / "missing"))
        assert "there is no program" in missing.scan("ls").note

    def test_relative_entry_of_path_is_ignored(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fake_tirith(tmp_path / "tirith", 0)
        monkeypatch.chdir(tmp_path)
        assert CommandScanner(SecurityConfig(), tmp_path / "home", {"PATH": ".:"}).find() is None

    @pytest.mark.parametrize("is_link", [False, True])
    def test_program_of_the_project_is_passed_over(self, tmp_path: Path, is_link: bool) -> None:
        project = tmp_path / "project"
        theirs = write_program(project / "bin" / "tirith", f"touch {tmp_path}/ran")
        directory = tmp_path / "link" if is_link else theirs.parent
        if is_link:
            directory.symlink_to(theirs.parent)
        scanner = scanner_of(tmp_path, directory)
        assert scanner.find(project) is None
        assert scanner.scan("ls", project=project) == ScanReport()
        assert not (tmp_path / "ran").exists()
        installed = fake_tirith(tmp_path / "bin" / "tirith", 1)
        assert scanner.find(project) == installed

    def test_program_that_others_can_change_is_never_run(self, tmp_path: Path) -> None:
        binary = write_program(tmp_path / "tirith", f"touch {tmp_path}/ran")
        binary.chmod(0o777)
        report = scanner_of(tmp_path, tirith_path=str(binary)).scan("ls")
        assert "other users can write" in report.note
        assert not (tmp_path / "ran").exists()

    @pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
    def test_program_of_another_user_is_never_run(self, tmp_path: Path) -> None:
        binary = write_program(tmp_path / "tirith", f"touch {tmp_path}/ran")
        os.chown(binary, 12345, 12345)
        assert "belongs to" in scanner_of(tmp_path, tirith_path=str(binary)).scan("ls").note
        assert not (tmp_path / "ran").exists()


class TestFailure:
    def test_without_tirith_everything_is_allowed_silently(self, tmp_path: Path) -> None:
        assert scanner_of(tmp_path).scan("ls") == ScanReport()

    def test_disabled_scanner_runs_nothing(self, tmp_path: Path) -> None:
        binary = fake_tirith(tmp_path / "tirith", 1)
        assert scanner_of(tmp_path, tirith_path=str(binary), tirith_enabled=False).scan("ls") == ScanReport()
        assert not Path(f"{binary}.args").exists()

    @pytest.mark.parametrize(("fail_open", "verdict"), [(True, "allow"), (False, "block")])
    @pytest.mark.parametrize("script", ["exit 7", "sleep 300"])
    def test_failure_counts_as_configured(self, tmp_path: Path, fail_open: bool, verdict: str, script: str) -> None:
        binary = write_program(tmp_path / "tirith", script)
        scanner = scanner_of(tmp_path, tirith_path=str(binary), tirith_timeout=0.3, tirith_fail_open=fail_open)
        report = scanner.scan("ls")
        assert report.verdict == verdict
        assert report.note.startswith("Tirith did not check it: ")

    def test_missing_program_blocks_if_a_scan_is_required(self, tmp_path: Path) -> None:
        assert scanner_of(tmp_path, tirith_fail_open=False).scan("ls").verdict == "block"

    @pytest.mark.parametrize("fail_open", [True, False])
    def test_command_that_cannot_be_passed_is_always_blocked(self, tmp_path: Path, fail_open: bool) -> None:
        binary = fake_tirith(tmp_path / "tirith", 0)
        scanner = scanner_of(tmp_path, tirith_path=str(binary), tirith_fail_open=fail_open)
        assert scanner.scan("x" * 200_000).verdict == "block"


class TestSettings:
    def test_settings_are_read(self, tmp_path: Path) -> None:
        (tmp_path / "config.yaml").write_text("security: {tirith_fail_open: false, tirith_timeout: 2}")
        assert load_config(tmp_path).security == SecurityConfig(tirith_fail_open=False, tirith_timeout=2.0)

    def test_download_needs_a_checksum(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="tirith_sha256"):
            scanner_of(tmp_path, tirith_install_url="https://example.org/tirith")

    @pytest.mark.parametrize("url", ["http://example.org/t", "file:///bin/sh", "ftp://x", "t"])
    def test_download_needs_an_encrypted_address(self, tmp_path: Path, url: str) -> None:
        with pytest.raises(ConfigError, match="https"):
            scanner_of(tmp_path, tirith_install_url=url, tirith_sha256="0" * 64)

    def test_checksum_must_look_like_one(self, tmp_path: Path) -> None:
        (tmp_path / "config.yaml").write_text("security: {tirith_sha256: abc}")
        with pytest.raises(ConfigError, match="64 hexadecimal digits"):
            load_config(tmp_path)
