"""What counts as a secret, and what does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.state.redaction import HIDDEN, redact, redact_value

KEY = "-----BEGIN {0}PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq\nZ+s=\n-----END {0}PRIVATE KEY-----"

BY_SHAPE = [
    "sk-proj-abcdEFGH1234ijklMNOP5678",
    "sk-ant-api03-abcdEFGH1234ijklMNOP5678-xyz",
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "whsec_abcdefghijklmnop1234",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "glpat-abcdefghij1234567890",
    "xoxb-1234567890-abcdefghij",
    "xapp-1-A0123456789-abcdef",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "ya29.a0AfH6SMBabcdefghij1234567890",
    "hf_abcdefghijklmnop1234567890",
    "npm_abcdefghijklmnop1234567890abcdefghij",
    "gsk_abcdefghijklmnop1234567890",
    "xai-abcdefghijklmnop1234567890",
    "pypi-AgEIcHlwaS5vcmcCJDExMTExMTEx",
    "hvs.CAESIabcdefghijklmnop1234567890",
    "dapi0123456789abcdef0123456789abcdef",
    "SG.abcdefghijklmnopqrst.uvwxyz0123456789abcdef",
    "AGE-SECRET-KEY-1QQPQYQSZQGPQYQSZQGPQYQSZQGP",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw8",
    "MTIzNDU2Nzg5MDEyMzQ1Njc4.GabcdE.abcdefghijklmnopqrstuvwxyz0123456789AB",
    KEY.format(""),
    KEY.format("RSA "),
    KEY.format("OPENSSH "),
]

BY_PLACE = [
    ("postgres://ada:s3cret@db.example.com/x", "postgres://ada:[redacted]@db.example.com/x"),
    ("redis://:s3cret@cache:6379", "redis://:[redacted]@cache:6379"),
    ("https://abcdefghijklmnopqrst12@host/repo.git", "https://[redacted]@host/repo.git"),
    ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
    ('{"Authorization": "Basic YWRhOmFkYQ=="}', '{"Authorization": "Basic [redacted]"}'),
    ("curl -H 'authorization: token abcdef'", "curl -H 'authorization: token [redacted]'"),
    ("use Bearer abc123def456ghi there", "use Bearer [redacted] there"),
    ("Set-Cookie: session=abc; Path=/", "Set-Cookie: [redacted]"),
    ("curl -u ada:hunter2 https://example.com", "curl -u ada:[redacted] https://example.com"),
    ("machine x login ada password hunter2", "machine x login ada password [redacted]"),
    ("https://hooks.slack.com/services/T000/B000/XXXX", "https://hooks.slack.com/services/[redacted]"),
    ("https://discord.com/api/webhooks/123/abc-def", "https://discord.com/api/webhooks/[redacted]"),
]

BY_NAME = [
    ("export OPENAI_API_KEY=abcdefgh", "export OPENAI_API_KEY=[redacted]"),
    ("PGPASSWORD=hunter2 psql", "PGPASSWORD=[redacted] psql"),
    ('"password": "correct horse battery"', '"password": "[redacted]"'),
    ("password: hunter2", "password: [redacted]"),
    ("apiKey: 'abcd1234'", "apiKey: '[redacted]'"),
    ('client_secret => "abcd1234"', 'client_secret => "[redacted]"'),
    ('password: str = "hunter2"', 'password: str = "[redacted]"'),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = [redacted]"),
    ("https://x.example/?access_token=abc123&page=2", "https://x.example/?access_token=[redacted]&page=2"),
    ("X-Api-Key: abcdef123456", "X-Api-Key: [redacted]"),
    ("deploy --token abcdefgh --verbose", "deploy --token [redacted] --verbose"),
    ('deploy --db-password="a b c d"', 'deploy --db-password="[redacted]"'),
    ("Server=x;Uid=ada;Pwd=hunter2;", "Server=x;Uid=ada;Pwd=[redacted];"),
    (r"{\"password\": \"hunter2\"}", r"{\"password\": \"[redacted]\"}"),
    ("密码 password：x password=日本語です", "密码 password：x password=[redacted]"),
]

NO_SECRET = [
    "The token is invalid, so the password has to be changed.",
    "max_tokens: 4096, input_tokens=5000",
    "def login(self, token: str, password: str | None = None) -> None:",
    "if token == other.token:",
    "password = get_password()",
    'api_key = os.environ["OPENAI_API_KEY"]',
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "curl -H x-api-key:$KEY --token $TOKEN --password <password>",
    "self.token = config.token",
    "pwd: /home/ada/projects",
    "tokenizer = load_tokenizer()",
    "Bearer authentication is explained there",
    "ada@example.com and git@github.com:ada/wiki.git",
    "https://example.com:8080/a@b",
    "sk-learn-is-not-a-key-at-all",
    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----",
    "20261115_190312_a1b2c3d4 and 3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "",
]


@pytest.mark.parametrize("secret", BY_SHAPE, ids=lambda secret: secret[:12])
def test_a_secret_is_known_by_its_shape(secret: str) -> None:
    assert redact(f"here: {secret}, and there") == (f"here: {HIDDEN}, and there", 1)


@pytest.mark.parametrize(("text", "left"), [*BY_PLACE, *BY_NAME])
def test_a_secret_is_known_by_what_stands_before_it(text: str, left: str) -> None:
    assert redact(text) == (left, 1)


@pytest.mark.parametrize("text", NO_SECRET)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == (text, 0)


@pytest.mark.parametrize("text", [*BY_SHAPE, *(text for text, _ in [*BY_PLACE, *BY_NAME])])
def test_what_was_redacted_is_not_redacted_again(text: str) -> None:
    once, _ = redact(text)
    assert redact(once) == (once, 0)


def test_a_private_key_that_breaks_off_is_one_too() -> None:
    assert redact("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIB") == (HIDDEN, 1)


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "mysql --password=hunter2 -e 'select 1'"},
        {"env": {"TOKEN": "abcdefgh"}, "path": "/etc/x"},
        {"content": KEY.format("EC ")},
        {"headers": [{"Authorization": "Bearer abcdef"}]},
    ],
    ids=str,
)
def test_arguments_of_a_tool_stay_json(arguments: dict[str, Any]) -> None:
    text, count = redact(json.dumps(arguments))
    assert count == 1
    assert json.loads(text).keys() == arguments.keys()
    assert HIDDEN in text


def test_structures_are_looked_through() -> None:
    value = [{"type": "text", "text": "password=hunter2"}, {"password": "x", "pin": 5, "token": None, "secret": "$S"}]
    assert redact_value(value) == (
        [{"type": "text", "text": f"password={HIDDEN}"}, {"password": HIDDEN, "pin": 5, "token": None, "secret": "$S"}],
        2,
    )


def test_what_cannot_be_looked_through_is_taken_for_a_secret() -> None:
    nested: list[Any] = []
    for _ in range(5_000):
        nested = [nested]
    assert redact_value(nested) == (HIDDEN, 1)


@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN PRIVATE KEY-----",
        "token ",
        "a://",
        "password:",
        "eyJ",
        '"',
        "a",
        "\\",
        'token="',
        " -u ",
        "login x ",
    ],
)
def test_a_text_made_to_be_slow_is_not(piece: str) -> None:
    assert redact(piece * (200_000 // len(piece)))[0]
