"""Put `hermes` on the PATH: `path_link.py install|uninstall PREFIX` makes or removes the link PREFIX/bin/hermes.

A file that is not such a link is never replaced or removed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent.parent / ".venv" / "bin" / "hermes"


def main(action: str, prefix: str) -> int:
    link = Path(os.path.expanduser(prefix)).absolute() / "bin" / "hermes"
    try:
        return install(link) if action == "install" else uninstall(link)
    except OSError as error:
        print(
            f"{error.filename}: {error.strerror}. Name another place: make {action} PREFIX=DIRECTORY", file=sys.stderr
        )
        return 1


def install(link: Path) -> int:
    if not is_free(link):
        print(f"{link} is there already and was not made by this command; it stays as it is", file=sys.stderr)
        return 1
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(PROGRAM)
    print(f"{link} starts Hermes")
    found = shutil.which("hermes")
    if found is None:
        line = f'export PATH={shlex.quote(str(link.parent))}:"$PATH"'
        print(f"{link.parent} is not on your PATH. Add this line to the file that your shell reads at its start:")
        print(f"  {line}")
    elif Path(found).absolute() != link and Path(found).resolve() != PROGRAM.resolve():
        print(f"But `hermes` means {found} in your shell: put {link.parent} before it in PATH")
    return 0


def uninstall(link: Path) -> int:
    if not link.is_symlink() or not is_free(link):
        print(f"{link} is not a link of this program; nothing was removed", file=sys.stderr)
        return 1
    link.unlink()
    print(f"{link} is removed. Your sessions and settings stay in the Hermes home.")
    return 0


def is_free(link: Path) -> bool:
    """Whether there is nothing, or a link to the program of this directory or of one that is gone."""
    if not link.is_symlink():
        return not link.exists()
    target = Path(os.readlink(link))
    return target == PROGRAM or (not link.exists() and target.parts[-3:] == PROGRAM.parts[-3:])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
