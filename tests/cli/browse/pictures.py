"""Create the pictures of `docs/guide/browse.md` from real screens: python -m tests.cli.browse.pictures"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from hermes.cli.browse.dialogs import DeleteDialog
from hermes_state import SessionDB
from tests.cli.browse.driving import LARGE, SMALL, Screen, drive
from tests.cli.conftest import Hermes

IMAGES = Path(__file__).parents[3] / "docs" / "images"
HOUR_S = 3_600.0
POOL = "20261114_143022_e5f60718"
SESSIONS = (
    ("20261115_190312_a1b2c3d4", "cli", "refactoring auth", "Help me refactor the auth module please", 2),
    ("20261115_141500_5be01f77", "telegram", None, "What's the weather in Las Vegas?", 7),
    (POOL, "cli", "connection pool", "Why does the connection pool run dry at night?", 26),
    ("20261112_101500_f9a8b7c6", "telegram", "京都旅行の計画 🎉", "来月の京都旅行の計画を立てるのを手伝って", 75),
    ("20261110_081200_0c0ffee0", "discord", "team stand-up", "Summarise what everybody said in the stand-up", 121),
    ("20261109_170000_77aa88bb", "cli", "letter to the landlord", "Draft a letter about the heating", 140),
    ("20261108_120000_12ab34cd", "slack", "release notes", "Write the release notes for 2.4", 166),
)
EXCHANGES = (
    ("assistant", "Sessions are not given back when a request times out. The pool waits for them until the morning."),
    ("user", "Where should they be given back?"),
    ("assistant", "In the `finally` of `handle()`; and the deploy script should drain the pool before it restarts."),
    ("user", "Do that, please, and add a test."),
    ("assistant", "Done: the test times a request out and counts the sessions afterwards."),
)


def main() -> None:
    """Fill a store, browse it and save the screenshots."""
    with tempfile.TemporaryDirectory() as directory:
        os.environ["HERMES_HOME"] = directory
        hermes = Hermes(Path(directory))
        _fill(hermes)
        drive(hermes, _picture("browse", _list), LARGE)
        drive(hermes, _picture("browse-found", _found), LARGE)
        drive(hermes, _picture("browse-narrow", _list), SMALL)
        drive(hermes, _picture("browse-delete", _question), SMALL)


def _fill(hermes: Hermes) -> None:
    now = time.time()
    with SessionDB(hermes.database) as db:
        for session_id, source, title, words, hours in SESSIONS:
            moment = now - hours * HOUR_S - 600
            db.create_session(session_id, source, started_at=moment - 120)
            db.append_message(session_id, "user", words, timestamp=moment)
            db.update_token_counts(
                session_id, 1_200 * len(words), 90, model="gpt-5-mini", estimated_cost_usd=len(words) / 300
            )
            for role, text in EXCHANGES if session_id == POOL else ():
                db.append_message(session_id, role, text, timestamp=moment)
            if title:
                db.set_session_title(session_id, title)
        db.set_session_pinned(POOL, True)


async def _list(screen: Screen) -> None:
    await screen.until(lambda: len(screen.names) == len(SESSIONS), "the list")
    await screen.press("down", "down")
    if screen.browser.size.width >= LARGE[0]:
        await screen.until(lambda: "Done: the test" in screen.pane, "the pane")


async def _found(screen: Screen) -> None:
    await screen.until(lambda: len(screen.names) == len(SESSIONS), "the list")
    await screen.type("deplo")
    await screen.until(lambda: len(screen.hit_names) == 1, "the hits")
    await screen.until(lambda: "Done: the test" in screen.pane, "the pane")


async def _question(screen: Screen) -> None:
    await _list(screen)
    await screen.press("f8")
    await screen.until(lambda: isinstance(screen.browser.screen, DeleteDialog), "the question")


def _picture(name: str, scenario: Callable[[Screen], Awaitable[None]]) -> Callable[[Screen], Awaitable[None]]:
    async def run(screen: Screen) -> None:
        await scenario(screen)
        await screen.pilot.pause(0.2)
        picture = screen.browser.export_screenshot(title="hermes sessions browse")
        # A picture loads nothing: the reader's own monospaced font does.
        picture = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", picture, flags=re.DOTALL)
        IMAGES.mkdir(exist_ok=True)
        (IMAGES / f"{name}.svg").write_text(picture.replace("Fira Code", "monospace"), encoding="utf-8")

    return run


if __name__ == "__main__":
    main()
