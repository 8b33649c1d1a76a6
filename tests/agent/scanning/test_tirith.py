"""Tirith as a program: every exit code, and every way to fail."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hermes.agent.safety.scanning.findings import CommandNotScannable, ScanFailed, ScanReport, Verdict
from hermes.agent.safety.scanning.scanner import CommandScanner
from hermes.agent.safety.scanning.tirith import MAX_COMMAND_BYTES, MAX_FINDINGS, read_findings, run_tirith
from hermes.config import SecurityConfig
from tests.agent.scanning.fake_tirith import fake_tirith, write_program

ENVIRON = {"PATH": "/usr/bin:/bin", "SOME_TOKEN": "secret"}


def judge(binary: Path, command: str = "ls", timeout_s: float = 20) -> ScanReport:
    return run_tirith(binary, command, timeout_s=timeout_s, environ=ENVIRON)


class TestVerdicts:
    @pytest.mark.parametrize(("code", "verdict"), [(0, "allow"), (1, "block"), (2, "warn")])
    def test_exit_code_is_the_verdict(self, tmp_path: Path, code: int, verdict: Verdict) -> None:
        report = judge(fake_tirith(tmp_path / "tirith", code))
        assert report.verdict == verdict
        assert [each.text for each in report.findings] == ["curl_pipe_shell (high): Runs a download"]
        assert report.note == "one finding"

    @pytest.mark.parametrize("code", [3, 42, 126, 255])
    def test_other_exit_code_is_a_failure(self, tmp_path: Path, code: int) -> None:
        with pytest.raises(ScanFailed, match=f"exit code {code}"):
            judge(fake_tirith(tmp_path / "tirith", code))

    def test_signal_is_a_failure(self, tmp_path: Path) -> None:
        with pytest.raises(ScanFailed, match="signal 11"):
            judge(write_program(tmp_path / "tirith", "kill -SEGV $$"))

    def test_program_gets_exactly_the_command(self, tmp_path: Path) -> None:
        binary = fake_tirith(tmp_path / "tirith", 0)
        judge(binary, "echo '$HOME' | sh --json")
        shown = Path(f"{binary}.args").read_text().splitlines()
        assert shown == ["check", "--json", "--non-interactive", "--shell", "posix", "--", "echo '$HOME' | sh --json"]

    @pytest.mark.parametrize("output", ['{"action": "allow", "verdict": "allow", "findings": []}', "garbage", ""])
    def test_output_never_changes_the_verdict(self, tmp_path: Path, output: str) -> None:
        assert judge(fake_tirith(tmp_path / "tirith", 1, output)) == ScanReport("block")


class TestFailures:
    def test_hanging_program_is_ended_with_its_children(self, tmp_path: Path) -> None:
        binary = write_program(tmp_path / "tirith", f"sleep 300 & echo $! > {tmp_path}/child; wait")
        with pytest.raises(ScanFailed, match=r"more than 0\.5 s"):
            judge(binary, timeout_s=0.5)
        child = int((tmp_path / "child").read_text())
        for _ in range(100):
            status = Path(f"/proc/{child}/stat")
            if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
                break
            time.sleep(0.05)
        else:
            pytest.fail("the child still runs")

    def test_child_that_keeps_the_output_open_does_not_delay_the_verdict(self, tmp_path: Path) -> None:
        assert judge(write_program(tmp_path / "tirith", "sleep 300 &\nexit 2")).verdict == "warn"

    def test_huge_output_is_limited_and_the_verdict_counts(self, tmp_path: Path) -> None:
        report = judge(write_program(tmp_path / "tirith", "head -c 50000000 /dev/zero\nexit 1"))
        assert report == ScanReport("block")

    def test_endless_output_ends_at_the_time_limit(self, tmp_path: Path) -> None:
        with pytest.raises(ScanFailed, match="more than"):
            judge(write_program(tmp_path / "tirith", "exec cat /dev/zero"), timeout_s=0.5)

    def test_cancellation_ends_the_scan(self, tmp_path: Path) -> None:
        binary = write_program(tmp_path / "tirith", "sleep 300")
        with pytest.raises(ScanFailed, match="stopped"):
            run_tirith(binary, "ls", timeout_s=60, environ=ENVIRON, is_cancelled=lambda: True)

    def test_file_that_is_no_program_is_a_failure(self, tmp_path: Path) -> None:
        broken = tmp_path / "tirith"
        broken.write_bytes(b"\0\1\2")
        broken.chmod(0o700)
        with pytest.raises(ScanFailed, match="could not be started"):
            judge(broken)

    @pytest.mark.parametrize("command", ["x" * (MAX_COMMAND_BYTES + 1), "\ud800", "a\0b"])
    def test_command_that_cannot_be_passed_is_not_scannable(self, tmp_path: Path, command: str) -> None:
        with pytest.raises(CommandNotScannable):
            judge(fake_tirith(tmp_path / "tirith", 0), command)

    def test_program_gets_no_secrets(self, tmp_path: Path) -> None:
        binary = write_program(tmp_path / "tirith", f"env > {tmp_path}/seen")
        scanner = CommandScanner(SecurityConfig(tirith_path=str(binary)), tmp_path, ENVIRON)
        assert scanner.scan("ls").verdict == "allow"
        assert "SOME_TOKEN" not in (tmp_path / "seen").read_text()


class TestFindings:
    def test_texts_are_cleaned_and_limited(self) -> None:
        data = {
            "findings": [{"rule": "a\x1b[2J", "message": "b\nc\u202e" + "x" * 1000}, "plain", 7, None, {}],
            "summary": "s\x07" * 2000,
        }
        findings, summary = read_findings(json.dumps(data).encode())
        assert all(each.text.isprintable() and len(each.text) < 300 for each in findings)
        assert [each.rule for each in findings] == ["a\\x1b[2J", "tirith", "tirith"]
        assert summary.isprintable()
        assert len(summary) <= 500

    def test_number_of_findings_is_limited(self) -> None:
        findings, _ = read_findings(json.dumps({"findings": ["x"] * 1000}).encode())
        assert len(findings) == MAX_FINDINGS

    @pytest.mark.parametrize(
        "output", [b"", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"findings": {}}', b"1" * 10_000, b'{"a": NaN}']
    )
    def test_other_output_has_no_findings(self, output: bytes) -> None:
        assert read_findings(output) == ((), "")
