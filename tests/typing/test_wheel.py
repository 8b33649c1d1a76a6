"""A wheel contains every file that the program reads when it runs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_has_all_migrations_and_other_data(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=100)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("hermes/") and not name.endswith(".py")}
    source = ROOT / "src"
    files = (path for path in (source / "hermes").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    wanted = {path.relative_to(source).as_posix() for path in files if path.suffix != ".py"}
    assert packed == wanted
    assert sum("/migrations/" in name for name in packed) >= 10
