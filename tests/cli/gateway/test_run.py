"""`hermes gateway run`: real processes and real signals."""

from __future__ import annotations

import logging
import os
import signal
import socket
import stat
from pathlib import Path

import pytest

from hermes.cli.gateway.foreground import _Warnings
from hermes.platforms.local.socket_file import SOCKET_NAME
from hermes_state import SessionDB
from tests.cli.conftest import Hermes
from tests.cli.gateway.running import (
    Gateway,
    answers,
    ask,
    configure,
    explain,
    gated_model,
    gateway,
    live,
    send,
)
from tests.support.waiting import LIMIT_S, wait_until

CLEAN = ".clean_shutdown"


def refused(hermes: Hermes, *args: str, **variables: str) -> tuple[int, str]:
    """Start a gateway that cannot start; return its exit code and what it wrote to stderr."""
    done = hermes("gateway", "run", *args, **variables)
    assert done.stdout == ""
    return done.returncode, done.stderr


class TestStart:
    def test_nothing_configured_serves_the_local_socket_with_the_offline_model(self, hermes: Hermes) -> None:
        with gateway(hermes, "--node", "desk") as running:
            assert f"Gateway desk (process {running.pid})" in running.output
            assert f"Store:     sqlite, {hermes.database}" in running.output
            assert "Model:     the offline model" in running.output
            assert f"Socket:    listening on {hermes.home / SOCKET_NAME}" in running.output
            assert "Platforms: none; only the local socket is served" in running.output
            assert "`hermes gateway talk`" in running.output
            assert "offline model" in ask(hermes, "hello").text

    def test_socket_is_private(self, hermes: Hermes) -> None:
        with gateway(hermes, "--node", "desk"):
            for name in (SOCKET_NAME, "gateway-desk.control", "gateway-desk.lock"):
                assert stat.S_IMODE((hermes.home / name).stat().st_mode) == 0o600

    def test_node_name_comes_from_the_configuration(self, hermes: Hermes) -> None:
        configure(hermes, "gateway: {node: kitchen}")
        with gateway(hermes) as running:
            assert "Gateway kitchen (process" in running.output

    def test_second_process_of_a_node_is_refused(self, hermes: Hermes) -> None:
        with gateway(hermes, "--node", "desk") as running:
            code, errors = refused(hermes, "--node", "desk")
            assert code == 4
            assert f"Error: a gateway named 'desk' is running with this home already (process {running.pid})" in errors
            assert "--node NAME" in errors
            assert ask(hermes, "hello").text  # the first one is not disturbed

    def test_another_node_joins_and_says_which_process_has_the_socket(self, hermes: Hermes) -> None:
        with gateway(hermes, "--node", "one") as first, gateway(hermes, "--node", "two") as second:
            assert f"Socket:    not listening: one (pid {first.pid}) has the socket" in second.output
            assert f"one (pid {first.pid}) has the socket" in second.errors
            first.signal()
            assert first.wait() == 0
            wait_until(lambda: live(hermes)["socket"].startswith("listening"), "the second node has the socket")
            assert ask(hermes, "hello").text

    def test_enabled_platform_that_no_package_serves_is_a_warning(self, hermes: Hermes) -> None:
        configure(hermes, "platforms: {signal: {enabled: true, token: x}, slack: {token: x}}\n")
        with gateway(hermes) as running:
            assert "Platforms: signal was not started" in running.output
        assert (
            "Warning: the platform signal was not started: no installed package serves the platform" in running.errors
        )
        assert "platform slack" not in running.errors

    def test_warning_of_a_library_that_repeats_itself_appears_once(self, capsys: pytest.CaptureFixture[str]) -> None:
        handler = _Warnings()
        for name, text in (("psycopg.pool", "try %d"), ("psycopg.pool", "try %d"), ("hermes.x", "lost %d")):
            for number in (1, 2):
                handler.emit(logging.LogRecord(name, logging.WARNING, "", 0, text, (number,), None))
        assert capsys.readouterr().err.splitlines() == ["Warning: try 1", "Warning: lost 1", "Warning: lost 2"]

    def test_warnings_are_on_stderr_and_in_the_log(self, hermes: Hermes) -> None:
        configure(hermes, "gatewai: {}\n")
        with gateway(hermes, "--node", "one"), gateway(hermes, "--node", "two") as second:
            assert "Warning: " in second.errors
            assert second.errors.count("unknown key gatewai") == 1
            assert "has the socket" in (hermes.home / "logs" / "hermes.log").read_text()


class TestStoreIsRequired:
    """A configured store that cannot be used ends the start; nothing is stored elsewhere instead."""

    @pytest.mark.parametrize(
        ("config", "said"),
        [
            ("sessiondb: {provider: postgresql, dsn: 'postgresql://ada:hunter2@127.0.0.1:1/chats'}", "127.0.0.1"),
            ("sessiondb: {provider: mysql, dsn: 'mysql://ada:hunter2@127.0.0.1:1/chats'}", "127.0.0.1"),
            ("sessiondb: {provider: oracle9}", "oracle9"),
        ],
    )
    def test_unavailable_store_ends_the_start(self, hermes: Hermes, config: str, said: str) -> None:
        configure(hermes, config)
        code, errors = refused(hermes)
        assert code == 1
        assert errors.startswith("Error: ")
        assert said in errors
        assert "hunter2" not in errors
        left = {each.name for each in hermes.home.iterdir()}
        assert not left & {"state.db", SOCKET_NAME, "sessions"}

    def test_file_that_is_no_database_ends_the_start(self, hermes: Hermes) -> None:
        hermes.home.mkdir(mode=0o700)
        hermes.database.write_text("these are notes, and no database" * 50)
        code, errors = refused(hermes)
        assert (code, hermes.database.read_text()[:15]) == (1, "these are notes")
        assert "state.db" in errors

    def test_failed_start_leaves_the_node_free(self, hermes: Hermes) -> None:
        configure(hermes, "sessiondb: {provider: oracle9}")
        assert refused(hermes, "--node", "desk")[0] == 1
        configure(hermes, "")
        with gateway(hermes, "--node", "desk") as running:
            assert "Gateway desk" in running.output


class TestStop:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_idle_gateway_stops_cleanly(self, hermes: Hermes, number: signal.Signals) -> None:
        with gateway(hermes, "--node", "desk") as running:
            running.signal(number)
            assert running.wait() == 0
            assert running.output.endswith("Stopped.\n")
        left = {each.name for each in hermes.home.iterdir()}
        assert CLEAN in left
        assert not left & {SOCKET_NAME, "gateway-desk.control"}

    def test_ignored_signal_stays_ignored(self, hermes: Hermes) -> None:
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does it
        try:
            running = Gateway(hermes)
        finally:
            signal.signal(signal.SIGHUP, before)
        try:
            running.ready().signal(signal.SIGHUP)
            assert ask(hermes, "hello").text
            running.signal()
            assert running.wait() == 0
        finally:
            running.kill()

    def test_gateway_works_on_after_the_reader_of_its_output_has_left(self, hermes: Hermes) -> None:
        reading, writing = os.pipe()
        process = hermes.start("gateway", "run", stdout=writing)
        os.close(writing)
        os.close(reading)
        try:
            wait_until(lambda: (hermes.home / SOCKET_NAME).exists(), "the socket")
            assert ask(hermes, "hello").text
            process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT_S) == 0
        finally:
            process.kill()
            process.communicate()

    def test_running_turn_ends_before_the_process(self, hermes: Hermes) -> None:
        with gated_model(hermes) as gate, gateway(hermes) as running:
            assert send(hermes, "hello") == "accepted"
            assert gate.asked.wait(LIMIT_S)
            running.signal()
            running.until("Draining: 1 turn runs, at most 3 min. A second signal stops at once.")
            gate.open.set()
            assert running.wait() == 0
        assert (explain(hermes, "m1")["state"], (hermes.home / CLEAN).exists()) == ("done", True)

    def test_second_signal_stops_at_once_and_the_next_start_continues(self, hermes: Hermes) -> None:
        with gated_model(hermes) as gate:
            with gateway(hermes) as running:
                send(hermes, "hello")
                assert gate.asked.wait(LIMIT_S)
                running.signal()
                running.until("Draining:")
                running.signal()
                assert running.wait() == 1
                assert "1 turn was cut off" in running.output
                assert "Stopping at once." in running.errors
            assert not (hermes.home / CLEAN).exists()
            waiting = explain(hermes, "m1")
            assert (waiting["state"], waiting["attempts"]) == ("accepted", 0)
            gate.open.set()
            with gateway(hermes):
                (answer,) = answers(hermes, 1)
        assert answer.answers == ("m1",)
        assert "hello" in answer.text
        with SessionDB(hermes.database) as db:
            texts = [each["content"] for each in db.get_messages(waiting["session_id"]) if each["role"] == "user"]
        assert texts == ["hello"]

    def test_turn_that_is_too_slow_is_cut_off(self, hermes: Hermes) -> None:
        with gated_model(hermes, "") as gate:
            configure(
                hermes,
                (hermes.home / "config.yaml")
                .read_text()
                .replace("auto_title: false", "auto_title: false, restart_drain_timeout: 1"),
            )
            with gateway(hermes) as running:
                send(hermes, "hello")
                assert gate.asked.wait(LIMIT_S)
                running.signal()
                assert running.wait() == 1
                assert "1 turn was cut off" in running.output
        assert explain(hermes, "m1")["state"] == "accepted"


class TestRestart:
    def test_restart_keeps_the_process_and_the_messages(self, hermes: Hermes) -> None:
        with gateway(hermes, "--node", "desk") as running:
            before = live(hermes)["holder"]
            ask(hermes, "hello", "m1")
            running.signal(signal.SIGUSR1)
            running.ready(times=2)
            assert "Restarting.\n" in running.output
            after = live(hermes)
            assert (after["pid"], after["node"]) == (running.pid, "desk")
            assert after["holder"] != before
            assert send(hermes, "hello", "m1") == "known"
            assert ask(hermes, "again", "m2").text
            running.signal()
            assert running.wait() == 0

    def test_restart_waits_for_the_turn(self, hermes: Hermes) -> None:
        with gated_model(hermes) as gate, gateway(hermes) as running:
            send(hermes, "hello")
            assert gate.asked.wait(LIMIT_S)
            running.signal(signal.SIGUSR1)
            running.until("Draining: 1 turn runs")
            gate.open.set()
            running.ready(times=2)
            (answer,) = answers(hermes, 1)
            assert answer.text == "You said: hello"

    def test_stop_during_a_restart_stops(self, hermes: Hermes) -> None:
        with gated_model(hermes) as gate, gateway(hermes) as running:
            send(hermes, "hello")
            assert gate.asked.wait(LIMIT_S)
            running.signal(signal.SIGUSR1)
            running.until("Draining: 1 turn runs")
            running.signal(signal.SIGTERM)
            gate.open.set()
            assert running.wait() == 0
            assert running.output.endswith("Stopped.\n")


def test_killed_gateway_loses_nothing(hermes: Hermes) -> None:
    with gated_model(hermes) as gate:
        with gateway(hermes, "--node", "desk") as running:
            send(hermes, "hello")
            assert gate.asked.wait(LIMIT_S)
            running.process.kill()
            running.wait()
        gate.open.set()
        with gateway(hermes, "--node", "desk"):  # the leases of the dead process end at once
            (answer,) = answers(hermes, 1)
    assert "hello" in answer.text
    turns = explain(hermes, "m1")["turns"]
    assert [(each["attempt"], each["state"], each["node"]) for each in turns] == [
        (1, "lost", "desk"),
        (2, "finished", "desk"),
    ]


class TestMetrics:
    def test_metrics_are_served(self, hermes: Hermes) -> None:
        port = free_port()
        configure(hermes, f"gateway: {{metrics_port: {port}}}")
        with gateway(hermes, "--node", "desk") as running:
            assert f"Metrics:   http://127.0.0.1:{port}/metrics" in running.output
            ask(hermes, "hello")
            head, text = fetch(port, "/metrics")
            assert head.startswith("HTTP/1.1 200 OK")
            assert 'hermes_gateway_events_total{event="turns_finished"} 1' in text
            assert "hermes_gateway_database_up 1" in text
            assert fetch(port, "/healthz")[1] == "ok\n"

    def test_port_in_use_is_a_warning(self, hermes: Hermes) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            configure(hermes, f"gateway: {{metrics_port: {port}}}")
            with gateway(hermes) as running:
                assert f"Warning: the metrics cannot be served on port {port}" in running.errors
                assert ask(hermes, "hello").text


class TestInstalledPlatforms:
    def install(self, folder: Path, name: str, body: str) -> str:
        """Make a package with an entry point, and return the PYTHONPATH with it."""
        folder.mkdir()
        (folder / f"{name}.py").write_text(body)
        info = folder / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[hermes.platforms]\n{name} = {name}:make\n")
        return f"{folder}{os.pathsep}{Path(__file__).parents[3] / 'src'}"

    def test_adapters_of_a_package_are_started(self, hermes: Hermes, tmp_path: Path) -> None:
        body = (
            "from hermes.platforms.base.adapter import BaseAdapter\n"
            "class Pager(BaseAdapter):\n    platform = 'pager'\n"
            "    def describe(self):\n        return '@pager_bot (https://pager.example/bot)'\n"
            "def make(context):\n    return Pager()\n"
        )
        configure(hermes, "platforms: {pager: {enabled: true}}")
        with gateway(hermes, PYTHONPATH=self.install(tmp_path / "site", "pager", body)) as running:
            assert "Platforms: pager connected as @pager_bot (https://pager.example/bot)" in running.output
            assert live(hermes)["connectors"] == {"local": "connected", "pager": "connected"}

    def test_broken_package_is_reported_and_left_out(self, hermes: Hermes, tmp_path: Path) -> None:
        body = "def make(context):\n    raise KeyError('token')\n"
        configure(hermes, "platforms: {pager: {enabled: true}, nonesuch: {enabled: true}}")
        with gateway(hermes, PYTHONPATH=self.install(tmp_path / "site", "pager", body)) as running:
            assert "Warning: the platform pager was not started: KeyError" in running.errors
            assert "nonesuch was not started: no installed package serves the platform nonesuch" in running.output
            assert ask(hermes, "hello").text


def test_secrets_are_hidden_from_other_processes(hermes: Hermes) -> None:
    running = Gateway(hermes, OPENAI_API_KEY="sk-very-secret")
    try:
        running.ready()
        assert b"sk-very-secret" not in Path(f"/proc/{running.pid}/environ").read_bytes()
        assert "sk-very-secret" not in running.output + running.errors
        assert "key from OPENAI_API_KEY" in running.output
    finally:
        running.kill()


def test_usage_error_names_the_help(hermes: Hermes) -> None:
    done = hermes("gateway", "run", "--nodes")
    assert (done.returncode, "hermes gateway run --help" in done.stderr) == (2, True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def fetch(port: int, path: str) -> tuple[str, str]:
    """Return the head and the body of a response."""
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        data = b""
        while chunk := client.recv(65536):
            data += chunk
    head, _, body = data.decode().partition("\r\n\r\n")
    return head, body
