"""The guard with the resolver of the system and a name server that lies: only a checked address is ever reached."""

from __future__ import annotations

import pytest

from tests.support.name_server import FORMAT_ERROR, NO_SUCH_NAME, REFUSED, SERVER_FAILURE, Answer
from tests.web.private_network import SEARCHED, Outcome, Scenario, run_in_private_network
from tests.web.servers import PUBLIC

HOST = "example.com"
REACHED = Answer([PUBLIC])
SECRET = Answer(["127.0.0.1"])
MANY = [f"8.8.8.{number}" for number in range(1, 18)]


def first(*answers: Answer, aaaa: Answer | None = None, **others: Answer) -> dict[str, list[Answer]]:
    """A script in which `example.com` has these answers, one for each look-up."""
    script = {f"A {HOST}": list(answers)}
    if aaaa is not None:
        script[f"AAAA {HOST}"] = [aaaa]
    return script | {key.replace("_", " ", 1).replace("_", "."): [each] for key, each in others.items()}


READ = {
    "plain": Scenario(first(REACHED)),
    "rebinding": Scenario(first(REACHED, SECRET)),
    "redirect to itself": Scenario(first(REACHED), ["/next"]),
    "chain of aliases": Scenario(first(Answer([PUBLIC], aliases=["a.example.net", "b.example.net"]))),
    "over TCP": Scenario(first(Answer([PUBLIC], is_cut=True))),
    "forged message before": Scenario(first(Answer([PUBLIC], forged=["127.0.0.1"]))),
    "failure for IPv6 only": Scenario(first(REACHED, aaaa=Answer(code=SERVER_FAILURE))),
}
REFUSED_ADDRESS = {
    "loopback": Scenario(first(SECRET)),
    "rebinding before a redirect": Scenario(first(REACHED, SECRET), ["/next"]),
    "redirect to another name": Scenario(first(REACHED, A_other_example_com=SECRET), ["http://other.example.com/"]),
    "private after public": Scenario(first(Answer([PUBLIC, "10.0.0.1"]))),
    "private before public": Scenario(first(Answer(["192.168.1.1", PUBLIC]))),
    "alias of a private one": Scenario(first(Answer(["127.0.0.1"], aliases=["www.example.org", "a.example.net"]))),
    "alias of a local name": Scenario(first(Answer(["127.0.0.1"], aliases=["localhost"]))),
    "public IPv4 and loopback IPv6": Scenario(first(REACHED, aaaa=Answer(["::1"]))),
    "public IPv4 and private IPv6": Scenario(first(REACHED, aaaa=Answer(["fd00:ec2::254"]))),
    "public IPv4 and mapped loopback": Scenario(first(REACHED, aaaa=Answer(["::ffff:127.0.0.1"]))),
    "public IPv4 and NAT64 of loopback": Scenario(first(REACHED, aaaa=Answer(["64:ff9b::7f00:1"]))),
    "private IPv6 over TCP": Scenario(first(REACHED, aaaa=Answer(["fe80::1"], is_cut=True))),
    "only mapped metadata": Scenario(first(Answer(), aaaa=Answer(["::ffff:169.254.169.254"]))),
    "everything": Scenario(first(Answer(["0.0.0.0"]))),
    "more addresses than can be checked": Scenario(first(Answer([*MANY], is_cut=True))),
    "found in the searched domain": Scenario(
        {f"A {HOST}": [Answer(code=NO_SUCH_NAME)], f"A {HOST}.{SEARCHED}": [SECRET]}
    ),
}
NOT_FOUND = {
    "no such name": Scenario({}),
    "no address": Scenario(first(Answer())),
    "failure of the server": Scenario(first(Answer(code=SERVER_FAILURE), aaaa=Answer(code=SERVER_FAILURE))),
    "refused question": Scenario(first(Answer(code=REFUSED), aaaa=Answer(code=REFUSED))),
    "format error": Scenario(first(Answer(code=FORMAT_ERROR), aaaa=Answer(code=FORMAT_ERROR))),
    "silence": Scenario(first(Answer(is_silent=True), aaaa=Answer(is_silent=True))),
    "silence over TCP": Scenario(first(Answer(garbage=""), aaaa=Answer(garbage=""))),
    "aliases in a circle": Scenario(first(Answer(aliases=["a.example.net", HOST] * 8))),
    "alias without an address": Scenario(first(Answer(aliases=["a.example.net"]))),
    "garbage": Scenario(first(Answer(garbage="\x81\x80" + "\xff" * 40), aaaa=Answer(garbage="\x81\x80"))),
    "records of another name": Scenario(first(Answer(["127.0.0.1"], owner="other.example.com"))),
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return run_in_private_network({**READ, **REFUSED_ADDRESS, **NOT_FOUND})


@pytest.mark.parametrize("name", READ)
def test_page_comes_from_the_checked_address(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes[name]
    assert (outcome.error, outcome.text, outcome.private) == ("", "a public page", 0), outcome.message


@pytest.mark.parametrize("name", REFUSED_ADDRESS)
def test_name_with_a_private_address_is_refused(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes[name]
    assert (outcome.error, outcome.private) == ("UnsafeUrl", 0), outcome
    assert outcome.public == len(REFUSED_ADDRESS[name].replies)


@pytest.mark.parametrize("name", NOT_FOUND)
def test_name_without_an_answer_is_refused(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes[name]
    assert (outcome.error, outcome.public, outcome.private) == ("WebUnavailable", 0, 0), outcome
    assert "example.com was not found" in outcome.message


def test_name_is_looked_up_once_for_each_request(outcomes: dict[str, Outcome]) -> None:
    asked = [[HOST, "A", "udp"]]
    assert [each for each in outcomes["rebinding"].asked if each[1] == "A"] == asked
    assert [each for each in outcomes["redirect to itself"].asked if each[1] == "A"] == 2 * asked
    assert {each[1] for each in outcomes["plain"].asked} == {"A", "AAAA"}


def test_long_answer_is_read_over_tcp(outcomes: dict[str, Outcome]) -> None:
    assert [HOST, "A", "tcp"] in outcomes["over TCP"].asked
    assert "more than 16 addresses" in outcomes["more addresses than can be checked"].message
