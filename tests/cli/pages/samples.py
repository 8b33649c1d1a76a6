"""Pages as examples, and their pictures in the documents: python -m tests.cli.pages.samples"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from hermes.cli.insights.page import render_page
from hermes_state import SessionDB
from tests.cli.conftest import COMMAND, TIMEOUT_S, Hermes
from tests.support.chromium import Chromium
from tests.support.sums import NOON, SUMS, sample

IMAGES = Path(__file__).parents[3] / "docs" / "images"
MARCH = 1_772_359_200.0
CALL = {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ss -ltn"}'}}
ANSWER = '''Port **80** is taken by `nginx`:

```sh
sudo systemctl stop nginx   # until the next start
```

# Next

1. Start the *wiki*, as [its manual](https://example.org/wiki) says.
2. Change `serve.py`:

```python
@app.route("/")
def index(name: str = "wiki") -> str:
    """Return the page."""
    return render(name, port=8080)  # a long remark, so that this line does not fit on the screen of a phone
```

| service | port | state |
|---|---:|:---:|
| nginx | 80 | **running** |
| wiki | 8080 | stopped |

```diff
-port = 80
+port = 8080
```
'''


def talk_page(directory: Path) -> Path:
    """Return an exported conversation with every kind of block."""
    hermes = Hermes(directory / "home")
    hermes.home.mkdir()
    with SessionDB(hermes.database, clock=lambda: MARCH) as db:
        session = "20260301_100000_a1b2c3d4"
        db.create_session(session, "cli", model="gpt-5", started_at=MARCH)
        db.set_session_title(session, "Why the wiki does not start")
        for role, content, more in (
            ("user", "Why does the wiki not start?\n  It says: *port 80*.", {}),
            ("assistant", "I look.", {"reasoning": "Which ports are in use?", "tool_calls": [CALL]}),
            ("tool", "LISTEN 0 511 0.0.0.0:80", {"tool_name": "terminal", "tool_call_id": "c1"}),
            ("assistant", ANSWER, {}),
        ):
            db.append_message(session, role, content, timestamp=MARCH + 60, **more)
    file = directory / "talk.html"
    subprocess.run(
        [*COMMAND, "sessions", "export", str(file), "--format", "html"],
        env=hermes.environment(TZ="UTC"),
        check=True,
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    return file


def main() -> None:
    """Draw the pages and save the pictures."""
    os.environ.setdefault("HERMES_TEST_RUN", tempfile.gettempdir())
    with tempfile.TemporaryDirectory() as place, Chromium(Path(place) / "profile") as browser:
        insights = Path(place) / "insights.html"
        insights.write_text(render_page(sample(SUMS), NOON), encoding="utf-8")
        talk = talk_page(Path(place))
        for file, width, height, name in (
            (talk, 1200, 900, "export"),
            (talk, 420, 900, "export-narrow"),
            (insights, 1200, 700, "insights"),
            (insights, 420, 700, "insights-narrow"),
        ):
            browser.open(file, width)
            top = browser.value("document.querySelector('.chart')?.getBoundingClientRect().top ?? 0")
            (IMAGES / f"{name}.png").write_bytes(browser.picture(max(0.0, top - 100), height))


if __name__ == "__main__":
    main()
