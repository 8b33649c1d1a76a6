"""The settings in config.yaml, and the errors for wrong ones."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from hermes.config import Config, SessionDBConfig, SessionsConfig, load_config
from hermes.errors import ConfigError
from hermes.section import setting_fields

SRC = Path(__file__).parents[2] / "src"
NOTHING_SET: Mapping[str, str] = {}


def load(home: Path, text: str | bytes, *, env: str | bytes | None = None, **environ: str) -> Config:
    data = text if isinstance(text, bytes) else text.encode()
    (home / "config.yaml").write_bytes(data)
    if env is not None:
        (home / ".env").write_bytes(env if isinstance(env, bytes) else env.encode())
    return load_config(home, environ=environ)


def complaint(home: Path, text: str | bytes, *, env: str | None = None, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(home, text, env=env, **environ)
    return str(caught.value)


class TestDefaults:
    def test_missing_file_gives_the_defaults(self, tmp_path: Path) -> None:
        assert load_config(tmp_path, environ=NOTHING_SET) == Config(
            sessiondb=SessionDBConfig(provider="sqlite", path=None, dsn=None, write_timeout_s=30.0),
            sessions=SessionsConfig(
                auto_prune=False, retention_days=90, min_interval_hours=24.0, vacuum_after_prune=True
            ),
            warnings=(),
        )

    def test_missing_home_gives_the_defaults(self, tmp_path: Path) -> None:
        assert load_config(tmp_path / "missing", environ=NOTHING_SET) == Config()

    @pytest.mark.parametrize("text", ["", " \n\n", "# only a comment\n", "---\n", "null\n", "sessiondb:\n", "\ufeff"])
    def test_empty_file_gives_the_defaults(self, text: str, tmp_path: Path) -> None:
        assert load(tmp_path, text) == Config()

    def test_null_means_the_default(self, tmp_path: Path) -> None:
        assert load(tmp_path, "sessions:\n  retention_days: null\n  auto_prune: ~\n") == Config()

    def test_the_home_is_found_through_the_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "config.yaml").write_text("sessions: {retention_days: 7}")
        monkeypatch.setenv("HERMES_HOME", str(tmp_path))
        assert load_config().sessions.retention_days == 7


class TestValues:
    def test_every_kind_of_value_is_read(self, tmp_path: Path) -> None:
        text = """
            sessiondb:
              provider: postgresql
              path: "elsewhere.db"
              dsn: postgresql://localhost/hermes
              write_timeout_s: 2.5
            sessions:
              auto_prune: true
              retention_days: 7
        """
        assert load(tmp_path, text) == Config(
            sessiondb=SessionDBConfig(
                provider="postgresql",
                path="elsewhere.db",
                dsn="postgresql://localhost/hermes",
                write_timeout_s=2.5,
            ),
            sessions=SessionsConfig(auto_prune=True, retention_days=7),
        )

    def test_a_whole_number_becomes_a_float_where_needed(self, tmp_path: Path) -> None:
        timeout = load(tmp_path, "sessiondb: {write_timeout_s: 5}").sessiondb.write_timeout_s
        assert (timeout, type(timeout)) == (5.0, float)

    def test_a_byte_order_mark_and_crlf_are_fine(self, tmp_path: Path) -> None:
        assert load(tmp_path, b"\xef\xbb\xbfsessions:\r\n  retention_days: 7\r\n").sessions.retention_days == 7

    def test_an_alias_is_followed(self, tmp_path: Path) -> None:
        text = "sessions: {retention_days: &days 7, min_interval_hours: *days}"
        assert load(tmp_path, text).sessions == SessionsConfig(retention_days=7, min_interval_hours=7.0)

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("", "/home/h/state.db"),
            ("x/s.db", "/home/h/x/s.db"),
            ("/srv/s.db", "/srv/s.db"),
            ("~/s.db", "/home/p/s.db"),
        ],
    )
    def test_the_database_is_found_from_the_home(
        self, path: str, expected: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", "/home/p")
        assert SessionDBConfig(path=path or None).sqlite_file(Path("/home/h")) == Path(expected)


class TestWrongValues:
    @pytest.mark.parametrize(
        ("section", "line", "found", "expected"),
        [
            ("sessions", "auto_prune: 1", "1", "true or false"),
            ("sessions", "auto_prune: 'true'", '"true"', "true or false"),
            ("sessions", "retention_days: true", "true", "a whole number of at least 1"),
            ("sessions", "retention_days: 0", "0", "a whole number of at least 1"),
            ("sessions", "retention_days: 1.5", "1.5", "a whole number of at least 1"),
            ("sessions", "retention_days: '7'", '"7"', "a whole number of at least 1"),
            ("sessions", "retention_days: [7]", "a list", "a whole number of at least 1"),
            ("sessions", "retention_days: {a: 7}", "a mapping", "a whole number of at least 1"),
            ("sessions", f"retention_days: {'9' * 5000}", f"{'9' * 60}...", "a whole number of at least 1"),
            ("sessions", "min_interval_hours: -1", "-1", "a number of at least 0"),
            ("sessiondb", "write_timeout_s: 0", "0", "a number above 0"),
            ("sessiondb", "write_timeout_s: soon", '"soon"', "a number above 0"),
            ("sessiondb", "write_timeout_s: true", "true", "a number above 0"),
            ("sessiondb", "write_timeout_s: .nan", ".nan", "a number above 0"),
            ("sessiondb", "write_timeout_s: .inf", ".inf", "a number above 0"),
            ("sessiondb", f"write_timeout_s: 1{'0' * 400}", f"1{'0' * 59}...", "a number above 0"),
            ("sessiondb", "provider: no", "no", "text"),
            ("sessiondb", "pool_max_size: 0", "0", "a whole number of at least 1"),
            ("sessiondb", "path: 2026-01-01", "2026-01-01", "text"),
            ("sessiondb", "path: !!python/object/apply:os.getcwd []", "a list", "text"),
            ("sessiondb", "path: !!binary eA==", "eA==", "text"),
            ("sessiondb", "path: !custom x", "x", "text"),
        ],
    )
    def test_the_error_names_key_value_expectation_file_and_line(
        self, section: str, line: str, found: str, expected: str, tmp_path: Path
    ) -> None:
        key = f"{section}.{line.partition(':')[0]}"
        message = complaint(tmp_path, f"# a comment\n{section}:\n  {line}\n")
        assert f"{tmp_path / 'config.yaml'}, line 3: {key} is {found}; expected {expected} (" in message

    def test_the_hint_names_the_default(self, tmp_path: Path) -> None:
        assert "remove the line to use the default, 90" in complaint(tmp_path, "sessions: {retention_days: x}")

    @pytest.mark.parametrize(("text", "kind"), [("sessiondb: [1]", "a list"), ("sessiondb: sqlite", "a single value")])
    def test_a_section_must_hold_settings(self, text: str, kind: str, tmp_path: Path) -> None:
        assert f"line 1: sessiondb is {kind}, expected settings by name" in complaint(tmp_path, text)

    def test_a_setting_written_twice_is_ambiguous(self, tmp_path: Path) -> None:
        message = complaint(tmp_path, "sessions:\n  retention_days: 7\n  retention_days: 8\n")
        assert "line 3: sessions.retention_days is set twice; the first is on line 2" in message

    def test_a_section_written_twice_is_ambiguous(self, tmp_path: Path) -> None:
        message = complaint(tmp_path, "sessions: {retention_days: 7}\nsessions: {auto_prune: true}\n")
        assert "line 2: sessions is set twice; the first is on line 1" in message


class TestUnknownKeys:
    def test_the_warning_names_file_line_and_the_nearest_key(self, tmp_path: Path) -> None:
        config = load(tmp_path, "sessions:\n  retention_day: 7\n")
        file = tmp_path / "config.yaml"
        assert config.warnings == (
            f"{file}, line 2: unknown key sessions.retention_day, did you mean sessions.retention_days?",
        )

    def test_unknown_key_at_the_top_is_a_warning_too(self, tmp_path: Path) -> None:
        (warning,) = load(tmp_path, "sesions: {retention_days: 7}").warnings
        assert "line 1: unknown key sesions, did you mean sessions?" in warning

    def test_unknown_key_without_a_similar_one_lists_all_keys(self, tmp_path: Path) -> None:
        (warning,) = load(tmp_path, "zzz: 1").warnings
        assert warning.endswith(f"unknown key zzz; known are {', '.join(setting_fields(Config))}")

    @pytest.mark.parametrize("text", ["1: x", "true: x", "? [a, b]\n: x", "<<: {a: 1}", "warnings: [x]"])
    def test_odd_keys_are_only_unknown(self, text: str, tmp_path: Path) -> None:
        config = load(tmp_path, text)
        assert len(config.warnings) == 1
        assert config.sessiondb == SessionDBConfig()

    def test_the_other_settings_still_count(self, tmp_path: Path) -> None:
        assert load(tmp_path, "zzz: 1\nsessions: {retention_days: 7}").sessions.retention_days == 7


class TestBrokenFiles:
    @pytest.mark.parametrize("text", ["- 1\n", "just text\n", "42\n"])
    def test_file_that_is_not_a_mapping_is_refused(self, text: str, tmp_path: Path) -> None:
        assert "config.yaml, line 1: the file is " in complaint(tmp_path, text)

    @pytest.mark.parametrize(
        ("text", "line"),
        [("a: b: c", 1), ("a:\n\tb: 1", 2), ("a: [1", 1), ("a: 'x", 1), ("a: 1\n--- \nb: 2", 2), ("a: 1\nb: \x07", 2)],
    )
    def test_invalid_yaml_is_refused(self, text: str, line: int, tmp_path: Path) -> None:
        assert f"config.yaml, line {line}: not valid YAML: " in complaint(tmp_path, text)

    def test_invalid_yaml_names_the_characters_and_hides_words(self, tmp_path: Path) -> None:
        assert "not valid YAML: expected ',' or '}', but got '{'" in complaint(tmp_path, "model: {default: ${NAME}}")
        hidden = complaint(tmp_path, "model: &hidden x\nbackup: *secret\n")
        assert "found undefined alias a word" in hidden
        assert "secret" not in hidden

    def test_undecodable_bytes_are_refused(self, tmp_path: Path) -> None:
        assert "config.yaml, line 2: not UTF-8 text (save the file as UTF-8)" in complaint(tmp_path, b"a: 1\nb: \xff\n")

    def test_a_directory_instead_of_the_config_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "config.yaml").mkdir()
        with pytest.raises(ConfigError, match=r"config\.yaml should be a file"):
            load_config(tmp_path, environ=NOTHING_SET)

    def test_a_dangling_link_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "config.yaml").symlink_to("gone.yaml")
        with pytest.raises(ConfigError, match=r"config\.yaml is a link to gone\.yaml, which does not exist"):
            load_config(tmp_path, environ=NOTHING_SET)

    def test_a_file_instead_of_the_home_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "home").write_text("")
        with pytest.raises(ConfigError, match="home should be a directory, but it is a file"):
            load_config(tmp_path / "home", environ=NOTHING_SET)

    def test_an_enormous_file_is_refused(self, tmp_path: Path) -> None:
        assert "the limit is 262144" in complaint(tmp_path, b"#" * 300_000)

    def test_deep_nesting_is_refused(self, tmp_path: Path) -> None:
        assert "nested too deeply" in complaint(tmp_path, "[" * 100_000)

    def test_nested_aliases_are_not_expanded(self, tmp_path: Path) -> None:
        lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)]
        config = load(tmp_path, "\n".join([*lines, "sessions: {retention_days: 7}"]))
        assert config.sessions.retention_days == 7

    def test_a_structure_that_contains_itself_is_read(self, tmp_path: Path) -> None:
        config = load(tmp_path, "sessions: &s {retention_days: 7, sessions: *s}")
        assert config.sessions.retention_days == 7


class TestReferences:
    @pytest.mark.parametrize(
        ("written", "environ", "expected"),
        [
            ("${X}", {"X": "a"}, "a"),
            ("'${X}'", {"X": "a"}, "a"),
            ("p/${X}/${Y}.db", {"X": "a", "Y": "b"}, "p/a/b.db"),
            ("${X:-a}", {}, "a"),
            ("${X:-a}", {"X": ""}, "a"),
            ("${X:-a}", {"X": "b"}, "b"),
            ("p${X}q", {"X": ""}, "pq"),
            ("${X}", {"X": "${Y}", "Y": "b"}, "${Y}"),
            ("$X", {"X": "a"}, "$X"),
            ("${X-a}", {"X": "b"}, "${X-a}"),
            ("${1X}", {"X": "b"}, "${1X}"),
            ("${}", {}, "${}"),
        ],
    )
    def test_reference_in_text_is_replaced(
        self, written: str, environ: dict[str, str], expected: str, tmp_path: Path
    ) -> None:
        config = load(tmp_path, f"sessiondb:\n  path: {written}\n", **environ)
        assert (config.sessiondb.path, config.warnings) == (expected, ())

    def test_an_unset_reference_stays_as_written_and_is_a_warning(self, tmp_path: Path) -> None:
        config = load(tmp_path, "sessiondb:\n  path: a/${NO_SUCH}\n")
        assert config.sessiondb.path == "a/${NO_SUCH}"
        (warning,) = config.warnings
        assert "line 2: sessiondb.path: NO_SUCH is not set" in warning

    @pytest.mark.parametrize("written", ["${X}", "${X:-}"])
    def test_an_empty_reference_means_the_default(self, written: str, tmp_path: Path) -> None:
        text = f"sessiondb:\n  path: {written}\n  write_timeout_s: {written}\n"
        assert load(tmp_path, text, X="") == Config()

    def test_numbers_and_booleans_from_references_are_converted(self, tmp_path: Path) -> None:
        text = """
            sessiondb: {provider: "${P}", write_timeout_s: "${T}"}
            sessions: {auto_prune: "${B}", retention_days: "${D:-7}"}
        """
        config = load(tmp_path, text, P="mysql", T="30", B="true")
        assert config == Config(
            sessiondb=SessionDBConfig(provider="mysql", write_timeout_s=30.0),
            sessions=SessionsConfig(auto_prune=True, retention_days=7),
        )

    def test_a_number_stays_text_where_text_is_expected(self, tmp_path: Path) -> None:
        assert load(tmp_path, "sessiondb: {path: '${X}'}", X="007").sessiondb.path == "007"

    def test_a_failed_conversion_names_the_variable_and_hides_its_value(self, tmp_path: Path) -> None:
        message = complaint(tmp_path, "sessiondb:\n  write_timeout_s: ${T}\n", T="s3cret")
        assert (
            "line 2: sessiondb.write_timeout_s is ${T}, but the value of T does not fit; expected a number" in message
        )
        assert "s3cret" not in message

    def test_a_number_from_an_unset_variable_names_it(self, tmp_path: Path) -> None:
        message = complaint(tmp_path, "sessiondb:\n  write_timeout_s: ${T}\n")
        assert "is ${T}, but T is not set; expected a number above 0" in message

    def test_keys_are_not_expanded(self, tmp_path: Path) -> None:
        (warning,) = load(tmp_path, '"${X}": 1', X="sessions").warnings
        assert "unknown key ${X}" in warning


class TestEnvFile:
    @pytest.mark.parametrize(
        ("line", "value"),
        [
            ("X=a", "a"),
            ("X = a ", "a"),
            ("export X=a", "a"),
            ("export\tX=a", "a"),
            ("X='a b'", "a b"),
            ("X='a\\n#b' # why", "a\\n#b"),
            ('X="a b"', "a b"),
            ('X="a\\"b\\\\\\tc" # why', 'a"b\\\tc'),
            ("X=a # why", "a"),
            ("X=a#b", "a#b"),
            ("X=a=b", "a=b"),
            ("X=a'b", "a'b"),
            ("X=${Y}", "${Y}"),
            ("X=a\nX=b", "b"),
            ("\n# comment\n\n  X=a", "a"),
            ("X=a\r\nY=b\r\n", "a"),
            ("\ufeffX=a", "a"),
            ("X=中文", "中文"),
        ],
    )
    def test_a_line_of_the_env_file_is_parsed(self, line: str, value: str, tmp_path: Path) -> None:
        config = load(tmp_path, "sessiondb: {path: '${X}'}", env=line)
        assert (config.sessiondb.path, config.warnings) == (value, ())

    def test_the_process_environment_wins(self, tmp_path: Path) -> None:
        assert load(tmp_path, "sessiondb: {path: '${X}'}", env="X=file", X="process").sessiondb.path == "process"

    @pytest.mark.parametrize("bad", ["s3cret", "=s3cret", "1X=s3cret", "X='s3cret", 'X="s3cret', "X='s3cret' tail"])
    def test_a_bad_line_is_a_warning_with_its_number_and_without_its_value(self, bad: str, tmp_path: Path) -> None:
        config = load(tmp_path, "sessiondb: {path: '${Y}'}", env=f"# first\n{bad}\nY=kept\n")
        assert config.sessiondb.path == "kept"
        (warning,) = config.warnings
        assert warning.startswith(f"{tmp_path / '.env'}, line 2 ")
        assert "s3cret" not in warning

    def test_bytes_that_are_not_text_spoil_only_their_line(self, tmp_path: Path) -> None:
        config = load(tmp_path, "sessiondb: {path: '${Y}'}", env=b"X=\xff\nY=kept\n")
        assert config.sessiondb.path == "kept"
        assert config.warnings == (f"{tmp_path / '.env'}, line 1 is not UTF-8 text and is ignored",)

    def test_a_directory_instead_of_the_env_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / ".env").mkdir()
        with pytest.raises(ConfigError, match=r"\.env should be a file"):
            load_config(tmp_path, environ=NOTHING_SET)


class TestSecrets:
    @pytest.mark.parametrize("dsn", ["[s3cret]", "{s3cret: 1}", "!x s3cret", "!!binary s3cret"])
    def test_a_wrong_dsn_is_not_shown(self, dsn: str, tmp_path: Path) -> None:
        message = complaint(tmp_path, f"sessiondb:\n  dsn: {dsn}\n")
        assert "line 2: sessiondb.dsn has a wrong value (not shown, it may be a secret)" in message
        assert "s3cret" not in message

    def test_url_in_the_wrong_place_shows_only_its_host(self, tmp_path: Path) -> None:
        message = complaint(tmp_path, "sessiondb:\n  write_timeout_s: postgresql://u:s3cret@s3cret/s3cret@host/db\n")
        assert "***@host/db" in message
        assert "s3cret" not in message

    @pytest.mark.parametrize(
        "text",
        [
            "sessiondb: postgresql://u:s3cret@host/db",
            "sessiondb:\n  dsn: *s3cret",
            "sessiondb:\n  dsn: !s3cret! x",
            "sessiondb:\n  dsn: 's3cret",
            "sessiondb:\n  dsn: %s3cret",
            "sessiondb:\n  dsn: x: s3cret",
        ],
    )
    def test_a_password_in_a_broken_file_is_not_shown(self, text: str, tmp_path: Path) -> None:
        assert "s3cret" not in complaint(tmp_path, text)


def test_yaml_is_imported_only_when_there_is_a_file(tmp_path: Path) -> None:
    code = "import sys; import hermes.config as c; c.load_config(); print({'yaml', 'msgspec'} & set(sys.modules))"
    environ = {"PYTHONPATH": str(SRC), "HERMES_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
