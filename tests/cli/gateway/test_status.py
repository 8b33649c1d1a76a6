"""`hermes gateway status`: the database, and the processes of the home."""

from __future__ import annotations

from tests.cli.conftest import Hermes
from tests.cli.gateway.running import ask, gated_model, gateway, live, send, status
from tests.support.waiting import LIMIT_S


def test_without_a_database_it_says_so(hermes: Hermes) -> None:
    done = hermes("gateway", "status")
    assert done.returncode == 0
    assert "The database does not exist yet" in done.stdout
    assert "No gateway runs with this home." in done.stdout
    assert (status(hermes)["queue"], status(hermes)["processes"]) == (None, [])
    assert not hermes.database.exists()


def test_json_keys_are_stable(hermes: Hermes) -> None:
    with gated_model(hermes) as gate, gateway(hermes, "--node", "desk"):
        send(hermes, "hello", "m1")
        assert gate.asked.wait(LIMIT_S)
        send(hermes, "/queue later", "m2")
        found = hermes.json("gateway", "status")
    assert found["schema"] == "hermes.gateway.status/1"
    assert set(found["item"]) == {"home", "store", "queue", "processes"}
    queue = found["item"]["queue"]
    expected = {"lanes", "waiting", "held", "running", "turns", "leases", "dead", "undelivered"}
    assert set(queue) == expected
    assert set(queue["turns"][0]) == {
        *("turn_id", "session_key", "session_id", "node", "holder", "started_at", "seconds", "steps", "activity"),
    }
    assert set(found["item"]["processes"][0]) == {"node", "pid", "holder", "live"}
    assert set(found["item"]["processes"][0]["live"]) == {
        *("node", "holder", "pid", "version", "started_at", "uptime_s", "is_draining", "turns", "activities", "cache"),
        *("loop_lag", "counters", "deliveries", "upkeep", "connectors", "limits", "socket", "clients", "metrics_port"),
    }


def test_running_turn_and_waiting_message_are_shown(hermes: Hermes) -> None:
    with gated_model(hermes) as gate, gateway(hermes, "--node", "desk") as running:
        send(hermes, "hello", "m1")
        assert gate.asked.wait(LIMIT_S)
        send(hermes, "/queue later", "m2")
        item = status(hermes)
        text = hermes("gateway", "status", COLUMNS="100").stdout
        narrow = hermes.on_terminal("gateway", "status", columns=40, NO_COLOR="1")
    queue, (process,) = item["queue"], item["processes"]
    assert (queue["lanes"], queue["waiting"]["messages"], queue["waiting"]["lanes"]) == (1, 1, 1)
    assert queue["waiting"]["oldest_s"] >= 0
    (turn,), (lease,) = queue["turns"], queue["leases"]
    assert turn["activity"] == process["live"]["activities"]["agent:main:local:dm:c1"]["activity"] != ""
    assert (turn["session_key"], turn["node"]) == ("agent:main:local:dm:c1", "desk")
    assert (lease["node"], lease["lanes"], lease["ended"]) == ("desk", 1, 0)
    assert lease["holder"] == process["holder"]
    assert (process["pid"], process["live"]["turns"]["running"]) == (running.pid, 1)
    assert list(process["live"]["activities"]) == ["agent:main:local:dm:c1"]
    assert "Waiting: 1 message in 1 lane, the oldest for " in text
    assert "agent:main:local:dm:c1  desk" in text
    assert f"Gateway desk (process {running.pid})" in text
    table = narrow[narrow.index("Running turns: 1") + 1 :][:3]
    assert table[2].split()[0].endswith("…")  # the lane is cut, so that the activity fits


def test_live_figures_count_what_happened(hermes: Hermes) -> None:
    with gateway(hermes):
        ask(hermes, "hello", "m1")
        ask(hermes, "hello again", "m2")
        send(hermes, "x" * 40_000, "m3")
        figures = live(hermes)
    assert figures["counters"]["turns_finished"] == 2
    assert figures["deliveries"]["sent"] >= 1  # the last one may be confirmed a moment later
    assert (figures["cache"]["entries"], figures["cache"]["hits"]) == (1, 1)
    assert figures["connectors"] == {"local": "connected"}
    assert (figures["limits"]["refused_messages"], figures["limits"]["message_characters"]) == (1, 32_000)
    assert 0 <= figures["loop_lag"]["p50_s"] <= figures["loop_lag"]["p99_s"] <= figures["loop_lag"]["max_s"]


def test_every_process_of_the_home_is_shown(hermes: Hermes) -> None:
    with gateway(hermes, "--node", "one") as one, gateway(hermes, "--node", "two") as two:
        found = {each["node"]: each for each in status(hermes)["processes"]}
        assert {name: each["pid"] for name, each in found.items()} == {"one": one.pid, "two": two.pid}
        assert {name: each["live"]["pid"] for name, each in found.items()} == {"one": one.pid, "two": two.pid}


def test_after_the_end_the_database_still_speaks(hermes: Hermes) -> None:
    with gateway(hermes):
        ask(hermes, "hello")
    item = status(hermes)
    assert (item["queue"]["lanes"], item["queue"]["running"], item["processes"]) == (1, 0, [])


def test_secret_of_the_store_is_not_shown(hermes: Hermes) -> None:
    hermes.home.mkdir()
    address = "postgresql://ada:hunter2@127.0.0.1:1/chats"
    (hermes.home / "config.yaml").write_text(f"sessiondb: {{provider: postgresql, dsn: '{address}'}}")
    done = hermes("gateway", "status")
    assert (done.returncode, "hunter2" in done.stdout + done.stderr) == (1, False)
