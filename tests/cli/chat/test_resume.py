"""Resuming: finding the session, the recap, and restoring directory and model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_state import SessionDB
from tests.cli.chat.conftest import Remember
from tests.cli.chat.stored import sessions, transcript
from tests.cli.chat.terminal import CTRL_D, Terminal
from tests.cli.conftest import Hermes
from tests.support.modelserver import ModelServer, Say

ID = "20261101_101010_aaaaaaaa"
OTHER = "20261102_101010_bbbbbbbb"


class TestWhich:
    @pytest.mark.parametrize(
        "args",
        [
            ("-c",),
            ("--continue",),
            ("chat", "-c"),
            ("-c", "my", "project"),
            ("-c", "MY PROJECT"),
            ("chat", "--resume", "my project"),
            ("-r", ID),
            ("-r", ID[:12]),
            ("-c", ID),
            (f"--resume={ID}",),
        ],
    )
    def test_session_is_found_by_id_prefix_and_title(
        self, hermes: Hermes, remember: Remember, args: tuple[str, ...]
    ) -> None:
        remember(ID, ("user", "hello"), ("assistant", "yes?"), title="my project")
        hermes.store((OTHER, "telegram", "elsewhere", "not from the terminal"))
        done = hermes(*args, "-q", "!say back")
        assert (done.returncode, done.stdout) == (0, "back\n")
        assert done.stderr.startswith(f'↻ Resumed {ID} "my project" (1 user message, 2 total messages)\n')

    def test_title_resumes_its_newest_number(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), title="my project #3")
        remember(OTHER, ("user", "hello"), title="my project")
        assert f"Resumed {ID}" in hermes("-c", "my project", "-q", "hi").stderr

    def test_exit_summary_shows_the_title_only_if_it_resumes_this_session(
        self, hermes: Hermes, remember: Remember
    ) -> None:
        remember(ID, ("user", "hello"), title="my project #3")
        remember(OTHER, ("user", "hello"), title="my project")
        assert 'hermes -c "my project"' not in hermes("-r", OTHER, "-q", "hi").stderr
        assert 'hermes -c "my project #3"' in hermes("-r", ID, "-q", "hi").stderr

    def test_messages_of_other_programs_are_not_counted(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("session_meta", "{}"), ("user", "hello"), ("assistant", "yes?"))
        output = hermes("-r", ID, "-q", "!say back").stderr
        assert "(1 user message, 2 total messages)" in output
        assert "Messages:       4 (2 user, 0 tool calls)" in output

    def test_ambiguous_name_lists_the_sessions(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"))
        remember(OTHER, ("user", "hello"))
        done = hermes("-r", "202611", "-q", "hi")
        assert done.returncode == 3
        assert ID in done.stderr
        assert OTHER in done.stderr

    def test_compressed_session_continues_in_its_newest(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "one"), ("assistant", "two"), ("user", "three"), title="long")
        with SessionDB(hermes.database) as db:
            tail = db.get_messages(ID)[-1]["id"]
            db.compress_session(ID, OTHER, "a summary", tail_from=tail)
        done = hermes("-r", ID, "-q", "hi")
        assert done.stderr.splitlines()[:2] == [
            f"{ID} was compressed and continues in {OTHER}",
            f'↻ Resumed {OTHER} "long #2" (1 user message, 2 total messages)',
        ]

    def test_resumed_session_is_reopened_and_ends_again(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"))
        hermes("-r", ID, "-q", "hi")
        assert [role for role, _ in transcript(hermes, ID)] == ["user", "user", "assistant"]
        assert sessions(hermes)[0]["end_reason"] == "user_exit"

    def test_damaged_store_is_not_reported_as_unknown_session(self, hermes: Hermes) -> None:
        hermes.home.mkdir()
        hermes.database.write_bytes(b"this is no database, but long enough to be looked at" * 100)
        done = hermes("-c", "any", "-q", "hi")
        assert done.returncode == 1
        assert "no session" not in done.stderr


class TestRecap:
    def test_recap_on_a_small_terminal(self, hermes: Hermes, remember: Remember) -> None:
        exchanges = [(role, f"{role} {n}") for n in range(12) for role in ("user", "assistant")]
        remember(ID, *exchanges, title="small")
        with Terminal(hermes, "-c", columns=80, lines=24, TERM="xterm-256color") as terminal:
            terminal.until_prompt()
            bar = "─" * 54
            assert terminal.lines[:5] == [
                f'↻ Resumed {ID} "small" (12 user messages, 24 total messages)',
                f"╭─ Previous Conversation {bar}╮",
                f"│ {'... 4 earlier messages ...':<76} │",
                f"│ {'':<76} │",
                f"│ {'● You: user 2':<76} │",
            ]
            assert terminal.lines[-3:] == [f"│ {'◆ Hermes: assistant 11':<76} │", f"╰{'─' * 78}╯", ">"]
            assert (terminal.colour_of("●"), terminal.colour_of("◆")) == ("d7af00", "5faf5f")

    def test_recap_on_a_large_terminal_with_wide_characters(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "来月の京都旅行の計画を立てるのを手伝って"), ("assistant", "もちろん🎉" * 50))
        with Terminal(hermes, "-c", columns=120, lines=40) as terminal:
            terminal.until_prompt()
            panel = terminal.lines[1:-1]
        assert panel == [
            f"╭─ Previous Conversation {'─' * 74}╮",
            f"│ ● You: 来月の京都旅行の計画を立てるのを手伝って{' ' * 49} │",
            f"│ ◆ Hermes: {'もちろん🎉' * 8}もちろ │",
            f"│           ん🎉{'もちろん🎉' * 8}も │",
            f"│           ちろん🎉{'もちろん🎉' * 7}もちろん │",
            f"│           🎉{'もちろん🎉' * 8}もち │",
            f"│           ろん🎉{'もちろん🎉' * 5}...{' ' * 27} │",
            f"╰{'─' * 98}╯",
        ]

    def test_recap_on_a_terminal_with_few_colours(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), ("assistant", "yes?"))
        with Terminal(hermes, "-c") as terminal:
            terminal.until_prompt()
            assert (terminal.colour_of("●"), terminal.colour_of("◆")) == ("brown", "green")

    def test_recap_can_be_turned_off(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), ("assistant", "yes?"))
        (hermes.home / "config.yaml").write_text("display: {resume_display: minimal}\n")
        with Terminal(hermes, "-c") as terminal:
            terminal.until_prompt()
            assert terminal.lines == [f"↻ Resumed {ID} (1 user message, 2 total messages)", ">"]

    def test_recap_limits_are_settings(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "a"), ("assistant", "b"), ("user", "hello"), ("assistant", "yes?"))
        (hermes.home / "config.yaml").write_text("display: {resume_exchanges: 1, resume_max_user_chars: 3}\n")
        with Terminal(hermes, "-c", columns=40) as terminal:
            terminal.until("... 2 earlier messages ...").until("● You: hel...")

    def test_resumed_empty_session_is_reported(self, hermes: Hermes) -> None:
        with SessionDB(hermes.database) as db:
            db.create_session(ID, "cli")
        with Terminal(hermes, "-c") as terminal:
            terminal.until_prompt()
            assert terminal.lines == [f"↻ Session {ID} has no messages yet", ">"]
            terminal.enter("!say now").until("◆ now").until_prompt().type(CTRL_D)
            terminal.until_over()
        assert len(transcript(hermes, ID)) == 2

    @pytest.mark.parametrize("columns", [40, 56])
    def test_lines_about_sessions_are_broken_between_words(
        self, hermes: Hermes, remember: Remember, columns: int
    ) -> None:
        remember(OTHER, ("user", "hello"), ("assistant", "yes?"), title="another conversation with a long title")
        remember(ID, ("user", "hello"), ("assistant", "yes?"), title="a title that is long")
        with Terminal(hermes, "-c", "a title that is long", columns=columns) as terminal:
            terminal.until_prompt()
            shown = " ".join(terminal.lines[: terminal.lines.index(">")]).partition(" ╭")[0]
            assert shown == f'↻ Resumed {ID} "a title that is long" (1 user message, 2 total messages)'
            assert f"\x1b[1m{ID}\x1b[0m".encode() in terminal.raw
            terminal.enter("/resume").until("Type a number").until_prompt()
            start = terminal.lines.index("> /resume")
            assert terminal.lines[start + 2].split()[-2:] == ["Last", "Active"]
            assert set(terminal.lines[start + 3]) == {"─"}
            assert terminal.lines[start + 4].endswith("1h ago")
            terminal.enter("1").until(f"↻ Resumed {OTHER}")


class TestRestored:
    def test_resume_restores_the_directory(self, hermes: Hermes, remember: Remember, tmp_path: Path) -> None:
        place = tmp_path / "project"
        place.mkdir()
        remember(ID, ("user", "hello"), ("assistant", "yes?"), cwd=str(place))
        done = hermes("-c", "-q", '!tool terminal {"command": "pwd"}')
        assert f"Directory: {place}\n" in done.stderr
        assert str(place) in done.stdout

    def test_resume_reports_a_missing_directory(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), ("assistant", "yes?"), cwd="/not/there/any/more")
        done = hermes("-c", "-q", "!say here")
        assert (
            f"Directory: {os.getcwd()} (this session used /not/there/any/more: No such file or directory)"
            in done.stderr
        )
        assert (done.returncode, done.stdout) == (0, "here\n")

    def test_resume_restores_the_model_of_the_same_provider(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), ("assistant", "yes?"), model="other-model")
        with ModelServer(Say("Back again.")) as server:
            (hermes.home / "config.yaml").write_text(server.config)
            done = hermes("-c", "-q", "hi")
            assert server.requests[0].body["model"] == "other-model"
        assert (done.stdout, done.returncode) == ("Back again.\n", 0)
        assert "Model: other-model\n" in done.stderr

    def test_model_option_wins_over_the_restored_model(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), ("assistant", "yes?"), model="other-model")
        with ModelServer(Say("Back again.")) as server:
            (hermes.home / "config.yaml").write_text(server.config)
            done = hermes("-m", "third-model", "-c", "-q", "hi")
            assert server.requests[0].body["model"] == "third-model"
        assert "Model: third-model (this session used other-model)\n" in done.stderr
        assert sessions(hermes)[0]["model"] == "third-model"

    def test_resume_reports_a_model_that_is_not_configured(self, hermes: Hermes, remember: Remember) -> None:
        remember(ID, ("user", "hello"), ("assistant", "yes?"), model="gpt-5")
        done = hermes("-c", "-Q", "-q", "!say offline")
        assert (done.returncode, done.stdout) == (0, "offline\n")
        assert "Model: offline (this session used gpt-5, which is not configured)\n" in done.stderr

    def test_session_of_the_offline_model_continues_with_a_real_one(self, hermes: Hermes) -> None:
        hermes("-q", "!say from here")
        with ModelServer(Say("Real.")) as server:
            (hermes.home / "config.yaml").write_text(server.config)
            done = hermes("-c", "-q", "hi")
            assert [each["content"] for each in server.requests[0].messages[1:]] == [
                "!say from here",
                "from here",
                "hi",
            ]
        assert done.stdout == "Real.\n"
        assert "Model: test-model (this session used the offline model)\n" in done.stderr
