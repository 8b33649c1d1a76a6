"""What a user's type checker reports: a wheel is built and unpacked, and programs are checked against it."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.typing.programs import HEADER, MISTAKES, RIGHT

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """Return what mypy reports to a user who has installed the wheel: by file, then by line."""
    place = tmp_path_factory.mktemp("user")
    python = installed(place)
    (place / "right.py").write_text(RIGHT)
    (place / "wrong.py").write_text(HEADER + "".join(f"    {mistake}\n" for mistake in MISTAKES))
    checker = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file="]
    done = subprocess.run(
        [*checker, f"--cache-dir={place / 'cache'}", f"--python-executable={python}", "right.py", "wrong.py"],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    found: dict[str, dict[int, str]] = {"right.py": {}, "wrong.py": {}}
    for line in done.stdout.splitlines():
        match = re.fullmatch(r"(right\.py|wrong\.py):(\d+): error: (.*)", line)
        if match:
            found[match[1]].setdefault(int(match[2]), match[3])
    assert done.returncode == 1, done.stdout + done.stderr
    return found


def installed(place: Path) -> Path:
    """Return the interpreter of a new environment with what a user installs."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE_S)
    (wheel,) = (place / "dist").glob("*.whl")
    venv.create(place / "venv", symlinks=True)
    (packages,) = (place / "venv").glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    return place / "venv" / "bin" / "python"


@pytest.mark.timeout(PATIENCE_S)
class TestUser:
    def test_type_checker_reports_every_mistake_of_a_user(self, complaints: dict[str, dict[int, str]]) -> None:
        first = HEADER.count("\n") + 1
        unseen = [mistake for line, mistake in enumerate(MISTAKES, first) if line not in complaints["wrong.py"]]
        assert unseen == ["db.append_message('s', 'user').bit_length"]

    def test_type_checker_reports_nothing_for_a_correct_program(self, complaints: dict[str, dict[int, str]]) -> None:
        assert complaints["right.py"] == {}
