"""The states of the store in which the transcripts of the documents are made, by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any

from tests.support.behaviours import Call, Say
from tests.support.modelserver import ModelServer
from tests.support.pagemap import overwrite, page_map
from tests.support.plainsql import change
from tests.support.transcript_gateway import gateway_asks, gateway_http, gateway_letters, gateway_running
from tests.support.transcript_home import DAY, HOUR, NOW, ROOT, Home, keep
from tests.support.transcript_project import project
from tests.support.transcript_servers import (
    postgresql,
    postgresql_differs,
    postgresql_docker,
    postgresql_in_use,
    postgresql_incomplete,
    postgresql_interrupted,
    postgresql_stemming,
)
from tests.support.transcript_usage import used
from tests.support.transcript_web import web_backend
from tests.upgrade.build_files import build

STAGING, WIKI, KYOTO = "20261116_023000_5be01f77", "20261115_040000_e5f60718", "20261112_220000_f9a8b7c6"


def empty(home: Home) -> None:
    """No store yet."""


def conversations(home: Home) -> None:
    """Conversations of several platforms, with a compression, two branches, an archived one and one of a tool."""
    project, second = "20261114_143022_e5f60718", "20261116_080000_0a0b0c0d"
    auth, tokens = "20261116_074500_a1b2c3d4", "20261116_083000_77c0ffee"
    letter = "Draft a letter to the landlord about the heating"
    stand_up = "Summarise what everybody said in the stand-up today"
    keep(
        home, "20261028_170000_77aa88bb", "cli", None, 19 * DAY - 7 * HOUR, ("user", letter), ("assistant", "Dear ...")
    )
    keep(home, "20261111_081200_0c0ffee0", "discord", "team stand-up 🎉", 5 * DAY, ("user", stand_up))
    keep(
        home,
        KYOTO,
        "telegram",
        "京都旅行の計画",
        3.5 * DAY,
        ("user", "来月の京都旅行の計画を立てるのを手伝ってください"),
        ("assistant", "京都なら嵐山と伏見稲荷がおすすめです。🍁"),
        ("user", "雨の日は?"),
        ("assistant", "錦市場と京都国立博物館がよいでしょう。"),
    )
    keep(
        home,
        project,
        "cli",
        "my project",
        30 * HOUR,
        ("user", "Can you check the test failures?"),
        ("assistant", "Yes."),
    )
    with home.open(29 * HOUR) as db:
        db.end_session(project, "compression")
    again = ("user", "Now make them pass")
    keep(home, second, "cli", "my project #2", 20, again, ("assistant", "Done."), parent_session_id=project)
    turns = ("user", "Try it without the cache")
    keep(
        home, "20261116_043000_5e55101d", "cli", None, 5.5 * HOUR, turns, parent_session_id=second, child_kind="branch"
    )
    weather = ("user", "What's the weather in Las Vegas?")
    keep(home, "20261116_023000_5be01f77", "telegram", None, 7.5 * HOUR, weather, ("assistant", "Sunny, 24 °C."))
    refactor = ("user", "Help me refactor the auth module please")
    keep(home, auth, "cli", "refactoring auth", 2.2 * HOUR, refactor, ("assistant", "Let me read it first."))
    turns = ("user", "And with tokens instead of sessions?")
    keep(home, tokens, "cli", None, 1.5 * HOUR, turns, parent_session_id=auth, child_kind="branch")
    delegate = {"parent_session_id": tokens, "child_kind": "delegate"}
    keep(
        home, "20261116_083100_de1e9a7e", "subagent", None, 1.4 * HOUR, ("user", "List the token libraries"), **delegate
    )
    keep(home, "20261115_090000_70017001", "tool", None, 25 * HOUR, ("user", "nightly report"))
    keep(home, "20260901_120000_a5c41fed", "cli", "old notes", 76 * DAY, ("user", "Notes about the old server"))
    with home.open() as db:
        db.set_session_archived("20260901_120000_a5c41fed", True)


def deploys(home: Home) -> None:
    """Three conversations, two of them about deploying."""
    keep(
        home,
        KYOTO,
        "cli",
        "京都旅行の計画",
        3.5 * DAY,
        ("user", "来月の京都旅行の計画を立てるのを手伝ってください"),
        ("assistant", "京都なら嵐山と伏見稲荷がおすすめです。🍁"),
    )
    compose = "Write a docker compose file for the wiki, so that we can deploy it on the new machine"
    keep(home, WIKI, "cli", None, 30 * HOUR, ("user", compose))
    keep(
        home,
        STAGING,
        "telegram",
        "staging deploy",
        7.4 * HOUR,
        ("user", "The docker deploy to staging fails again, can you look at the log? It worked on Friday."),
        ("assistant", "I look at the log."),
        ("tool:terminal", "deploying web\nError response from daemon: no space left on device"),
        ("assistant", "The disk of the runner is full. `docker builder prune` frees 38 GB, and then the deploy works."),
        ("user", "Do it, and then deploy docker-registry too"),
        ("user", "Log in with REGISTRY_TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345"),
        ("user", "docker, never mind"),
    )
    with home.open() as db:
        last = db.list_recent_user_messages(STAGING, 1)[0]["id"]
        db.rewind_to_message(STAGING, last)


def exported(home: Home) -> None:
    """An export of the conversations of `deploys`, another that was cut off, and no store."""
    deploys(home)
    home.run(0, "sessions", "export", "all.jsonl")
    text = (home.work / "all.jsonl").read_text()
    (home.work / "half.jsonl").write_text(text[:-200])
    shutil.rmtree(home.hermes)


def old_conversations(home: Home) -> None:
    """Conversations that have ended long ago, and one of today."""
    old = [
        ("20260215_180000_a1b2c3d4", "cli", "old experiments", 274 * DAY, 6),
        ("20260310_090000_b2c3d4e5", "telegram", None, 251 * DAY, 12),
        ("20260502_120000_c3d4e5f6", "telegram", None, 198 * DAY, 5),
    ]
    for session_id, source, title, age_s, count in old:
        keep(home, session_id, source, title, age_s, *[("user", f"message {number}") for number in range(count)])
        with home.open(age_s) as db:
            db.end_session(session_id, "user_exit")
    keep(home, "20261116_090000_d4e5f6a7", "cli", "backup plan", HOUR, ("user", "The backup goes to the NAS."))


def filled(home: Home) -> None:
    """Four conversations with 40 messages each."""
    for number in range(4):
        session_id = f"2026111{number}_090000_{number}a2b3c4d"
        turns = [("user" if each % 2 else "assistant", f"message {each}") for each in range(40)]
        keep(home, session_id, "cli", f"notes {number + 1}", HOUR * (4 - number), *turns)


def _backed_up(home: Home) -> None:
    """A backup of `filled`, after which a conversation was deleted and another one began."""
    filled(home)
    home.run(HOUR, "sessions", "backup")
    with home.open() as db:
        db.delete_session("20261110_090000_0a2b3c4d")
    keep(home, "20261116_095900_4a2b3c4d", "cli", None, 50, ("user", "message 1"), ("assistant", "message 2"))


def two_backups(home: Home) -> None:
    """A backup, changes, a second backup, and a copy of the first one with a changed letter."""
    _backed_up(home)
    first = next((home.hermes / "backups").glob("*.db"))
    home.run(30, "sessions", "backup")
    data = first.read_bytes()
    (home.work / "changed.db").write_bytes(data.replace(b"message 7", b"massage 7"))
    checksum = first.with_name(f"{first.name}.sha256").read_text()
    (home.work / "changed.db.sha256").write_text(checksum.replace(first.name, "changed.db"))


def wrong_counts(home: Home) -> None:
    """A store that others may read, with a wrong count and two messages missing from the search index."""
    filled(home)
    home.run(5 * HOUR, "sessions", "backup")
    change(
        home.database,
        "UPDATE sessions SET message_count = 41 WHERE id = '20261110_090000_0a2b3c4d'",
        "DELETE FROM messages_fts WHERE rowid IN (11, 12)",
        "DELETE FROM messages_fts_trigram WHERE rowid IN (11, 12)",
    )
    home.database.chmod(0o644)


def damaged(home: Home) -> None:
    """A store with a page of messages that cannot be read."""
    for number in range(5):
        session_id = f"2026111{number}_141500_{number}be01f77"
        keep(home, session_id, "cli", None, HOUR * (5 - number), *[("user", f"word{each} " * 40) for each in range(30)])
    pages = page_map(home.database, "messages")
    overwrite(home.database, pages.pages("leaf")[-2], bytes(4_096))


def zeros(home: Home) -> None:
    """A store of which only zeros are left."""
    filled(home)
    home.database.write_bytes(bytes(home.database.stat().st_size))


def old_file(home: Home) -> None:
    """A file of schema version 9."""
    home.hermes.mkdir(mode=0o700)
    build(9, home.database)


def other_programs(home: Home) -> None:
    """Files of Claude Code and of the Codex CLI."""
    claude = home.path / ".claude" / "projects" / "-home-ada-wiki"
    claude.mkdir(parents=True)
    lines: list[dict[str, Any]] = [{"type": "something-new", "uuid": "0"}]
    turns = [("user", "Which port does the wiki use?"), ("assistant", "Port 8123."), ("user", "Thanks.")]
    for number, (role, text) in enumerate(turns, 1):
        lines.append(
            {
                "type": role,
                "uuid": f"{number}",
                "parentUuid": f"{number - 1}" if number > 1 else None,
                "sessionId": "3f2504e0",
                "timestamp": f"2026-11-14T09:0{number}:00.000Z",
                "cwd": f"{home.path}/wiki",
                "message": {"role": role, "content": text, "model": "claude-sonnet-4-5"},
            }
        )
    (claude / "3f2504e0.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    codex = home.path / ".codex" / "sessions" / "2026" / "11" / "15"
    codex.mkdir(parents=True)
    meta = {"id": "5973b6c0", "timestamp": "2026-11-15T10:00:00.000Z", "cwd": f"{home.path}/app"}
    lines = [{"timestamp": meta["timestamp"], "type": "session_meta", "payload": meta}]
    for number, (role, text) in enumerate([("user", "Why is the build red?"), ("assistant", "A test fails.")]):
        kind = "input_text" if role == "user" else "output_text"
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        at = f"2026-11-15T10:0{number}:30.000Z"
        lines.append({"timestamp": at, "type": "response_item", "payload": payload})
    (codex / "rollout-2026-11-15T10-00-00-5973b6c0.jsonl").write_text("".join(f"{json.dumps(x)}\n" for x in lines))


def imported(home: Home) -> None:
    """A session that was imported from a file, which took place in a directory that is here."""
    (home.path / "wiki").mkdir()
    with home.open() as db:
        db.import_session(
            {
                "id": "claude-code_3f2504e0",
                "source": "claude-code",
                "title": "wiki",
                "model": "claude-sonnet-4-5",
                "cwd": f"{home.path}/wiki",
                "started_at": NOW - DAY,
                "messages": [
                    {"role": "user", "content": "Which port does the wiki use?", "timestamp": NOW - DAY},
                    {"role": "assistant", "content": "Port 8123.", "timestamp": NOW - DAY + 5},
                ],
            },
            imported_from=f"{home.path}/wiki.jsonl",
        )


def backup_plan(home: Home) -> None:
    """A conversation with the title "backup plan"."""
    home.run(HOUR, "-Q", "--lines", stdin="/title backup plan\nThe nightly backup goes to the NAS in the cellar.\n")


def nginx(home: Home) -> None:
    """A conversation about nginx, and the program of the page about the agent as `ask.py`."""
    refuses = "nginx refuses bodies above 1 MB. Set client_max_body_size 50m; in the server block and reload."
    turns = [("user", "The upload of large files fails with 413."), ("assistant", refuses), ("user", "That works.")]
    keep(home, "20261115_192300_a1b2c3d4", "cli", "nginx in front of the app", 14.6 * HOUR, *turns)
    page = (ROOT / "docs" / "reference" / "agent.md").read_text()
    (home.work / "ask.py").write_text(page.partition("```python\n")[2].partition("```")[0])


def commands_allowed(home: Home) -> None:
    """An agent may run commands without asking."""
    home.configure("approvals:\n  mode: allow\n")


def model_that_asks(home: Home) -> None:
    """A model that wants to run a command, and accepts a no."""
    script = (
        Say("Let me look.", calls=[Call("terminal", {"command": "ls -l > listing.txt"})]),
        Say("Then I leave it. Shall I show the list here instead?"),
    )
    server = home.resources.enter_context(ModelServer(*script))
    home.configure(f"model:\n  base_url: {server.base_url}\n  default: test-model\nagent:\n  auto_title: false\n")


def instructed(home: Home) -> None:
    """A project with instructions for agents."""
    (home.work / "AGENTS.md").write_text("Write tests for everything.\n")


def skills(home: Home) -> None:
    """Three skills, one of them with a mistake."""
    page = (ROOT / "docs" / "guide" / "creating-skills.md").read_text()
    deploy = "---\nname: deploy\ndescription: Deploys the wiki\nrequires_toolsets: [terminal, rocket]\n---\nPress.\n"
    texts = {
        "weekly-report": page.partition("```markdown\n")[2].partition("```")[0],
        "ops/deploy": deploy,
        "search": "---\nname: search\ndescription: Searches with curl\nfallback_for_toolsets: web\n---\nUse curl.\n",
        "draft": "To be written.\n",
    }
    for path, text in texts.items():
        directory = home.hermes / "skills" / path
        directory.mkdir(parents=True)
        (directory / "SKILL.md").write_text(text)
    (home.hermes / "skills" / "weekly-report" / "template.md").write_text("# Week of ...\n")
    for each in (home.hermes, *home.hermes.rglob("*")):
        each.chmod(0o700 if each.is_dir() else 0o600)


STATES: dict[str, Callable[[Home], None]] = {
    state.__name__.replace("_", "-"): state
    for state in (
        empty,
        conversations,
        deploys,
        exported,
        old_conversations,
        filled,
        two_backups,
        wrong_counts,
        damaged,
        zeros,
        old_file,
        used,
        other_programs,
        imported,
        backup_plan,
        nginx,
        commands_allowed,
        model_that_asks,
        instructed,
        skills,
        project,
        web_backend,
        gateway_running,
        gateway_http,
        gateway_letters,
        gateway_asks,
        postgresql,
        postgresql_docker,
        postgresql_stemming,
        postgresql_in_use,
        postgresql_interrupted,
        postgresql_differs,
        postgresql_incomplete,
    )
}
