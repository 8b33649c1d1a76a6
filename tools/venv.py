"""Make .venv from the locks: `venv.py PYTHON run|dev`, where PYTHON is the name that the person chose.

A stamp in .venv holds word for word what the environment was made from. Stamps are removed before anything is changed
and written when all is done, so the next run repeats an interrupted set-up. Several at once wait for each other.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCKS = {"run": ("run.txt",), "dev": ("run.txt", "dev.txt")}


def main(python: str, kind: str) -> None:
    require_venv_module(python)
    with only_one_at_a_time():
        if stamp(kind) != packages(python, kind) + project() or not interpreter().exists():
            print(f"Setting up .venv for {kind} ...", file=sys.stderr)
            set_up(python, kind)


def set_up(python: str, kind: str) -> None:
    present = [each for each in LOCKS if stamp(each)]
    intact = [each for each in present if stamp(each).startswith(packages(python, each))]
    for each in LOCKS:
        stamp_file(each).unlink(missing_ok=True)
    if "run" not in intact or present != intact or not interpreter().exists():
        intact = []
        execute(sys.executable, "-m", "venv", "--clear", str(VENV))
        (VENV / "made-with").write_text(f"{python}\n")
    if kind not in intact:
        pip_install("--require-hashes", "--requirement", str(ROOT / "requirements" / f"{kind}.txt"))
    pip_install("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    for each in {"run", kind, *intact}:
        stamp_file(each).write_text(packages(python, each) + project())


def packages(python: str, kind: str) -> str:
    locks = "".join((ROOT / "requirements" / name).read_text() for name in LOCKS[kind])
    return f"{python}\n{ROOT}\n{locks}---\n"


def project() -> str:
    return (ROOT / "pyproject.toml").read_text()


def stamp(kind: str) -> str:
    return stamp_file(kind).read_text() if stamp_file(kind).exists() else ""


def stamp_file(kind: str) -> Path:
    return VENV / f"{kind}.stamp"


def interpreter() -> Path:
    return VENV / "bin" / "python"


def require_venv_module(python: str) -> None:
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        sys.exit(
            f"{python} cannot make virtual environments: install its venv module"
            f" (Debian, Ubuntu: apt install python{version}-venv)"
        )


@contextmanager
def only_one_at_a_time() -> Iterator[None]:
    """Hold a lock on the project's directory, which the system drops when this process and its children have ended."""
    fd = os.open(ROOT, os.O_RDONLY)
    os.set_inheritable(fd, True)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def pip_install(*arguments: str) -> None:
    execute(str(interpreter()), "-m", "pip", "install", "--quiet", *arguments)


def execute(*command: str) -> None:
    """Run a command that settings of the person's own Python and pip cannot turn aside; its talk goes to stderr."""
    own = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
    done = subprocess.run(command, env=inherited | own, stdout=sys.stderr, close_fds=False, check=False)
    if done.returncode != 0:
        sys.exit("Setting up .venv failed; see the reason above; the next run starts from the beginning.")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
