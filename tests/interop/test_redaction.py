"""Which texts count as secrets, and which do not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.secrets import HIDDEN, hide_keys, redact, redact_value

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
    "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
    "npm_abcdefghijklmnop1234567890abcdefghij",
    "gsk_abcdefghijklmnop1234567890",
    "xai-abcdefghijklmnop1234567890",
    "pypi-AgEIcHlwaS5vcmcCJDExMTExMTEx",
    "hvs.CAESIabcdefghijklmnop1234567890",
    "dapi0123456789abcdef0123456789abcdef",
    "SG.abcdefghijklmnopqrst.uvwxyz0123456789abcdef",
    "ATBBabcdefghijklmnop1234ABCDEF",
    "dckr_pat_abcdefghijklmnopqrstuvwxyz1",
    "SK0123456789abcdef0123456789abcdef",
    "AC0123456789abcdef0123456789abcdef:0123456789abcdef0123456789abcdef",
    "key-0123456789abcdef0123456789abcdef",
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

BY_PLACE += [
    ("Cookie: session=abc123def; theme=dark", "Cookie: [redacted]"),
    ('"Cookie": "sessionid=abc123def456"', '"Cookie": "[redacted]"'),
    ('{"Set-Cookie": ["sid=abc123; HttpOnly"]}', '{"Set-Cookie": ["[redacted]"]}'),
    ('document.cookie = "session=abc123def456"', 'document.cookie = "[redacted]"'),
    ("curl -b sid=abc123 https://x.example", "curl -b [redacted] https://x.example"),
    ("curl --cookie 'sid=abc123' x", "curl --cookie '[redacted]' x"),
    ("sessionid=abc123def456ghi; x", "sessionid=[redacted]; x"),
    ("JSESSIONID=A1B2C3D4E5F60718", "JSESSIONID=[redacted]"),
    ("PHPSESSID=abcdef1234567890", "PHPSESSID=[redacted]"),
    ("connect.sid=s%3Aabcdef1234567890", "connect.sid=[redacted]"),
    ("_wiki_session=abcdef1234567890abcd", "_wiki_session=[redacted]"),
    ("Authorization: Negotiate YIIabcdefghijkl", "Authorization: Negotiate [redacted]"),
    ("https://x.example/k?X-Amz-Signature=fe5f80f77d5fa3&X=1", "https://x.example/k?X-Amz-Signature=[redacted]&X=1"),
    ("https://x.example/c?sv=2020&sig=abc%2Fdef123456%3D", "https://x.example/c?sv=2020&sig=[redacted]"),
    ("https://x.example/?auth=abcdef1234567890", "https://x.example/?auth=[redacted]"),
    ("_auth=YWRhOmh1bnRlcjI=", "_auth=[redacted]"),
    ('{"ghcr.io":{"auth":"YWRhOmh1bnRlcjI="}}', '{"ghcr.io":{"auth":"[redacted]"}}'),
    ("STRIPE_KEY=abcdefghijklmnop1234", "STRIPE_KEY=[redacted]"),
    ("APP_KEY=base64:abcdefgh1234ijkl=", "APP_KEY=[redacted]"),
    ("STRIPE_KEY=abcdefgh", "STRIPE_KEY=[redacted]"),
    ("'STRIPE_KEY': 'abcdefgh'", "'STRIPE_KEY': '[redacted]'"),
    ("PW=hunter2", "PW=[redacted]"),
    ("db_pw: swordfish", "db_pw: [redacted]"),
    ("dbPw = 'swordfish'", "dbPw = '[redacted]'"),
    ("Passwort: swordfish", "Passwort: [redacted]"),
    ("The password is hunter2, thanks", "The password is [redacted], thanks"),
    ("Password is swordfish", "Password is [redacted]"),
    ("the password is 'swordfish' for now", "the password is '[redacted]' for now"),
    ("password was correct#horse.", "password was [redacted]."),
    ("Das Passwort ist Hunter2!", "Das Passwort ist [redacted]!"),
    ("Das Kennwort lautet Schwertfisch.\nBis dann", "Das Kennwort lautet [redacted].\nBis dann"),
    ("pass: hunter2xyz", "pass: [redacted]"),
    ("requirepass hunter2xyz", "requirepass [redacted]"),
    ("CREATE USER a IDENTIFIED BY 'hunter2'", "CREATE USER a IDENTIFIED BY '[redacted]'"),
    ("ALTER ROLE a PASSWORD 'hunter2'", "ALTER ROLE a PASSWORD '[redacted]'"),
    ("machine x\n  password hunter2\n  login ada\n", "machine x\n  password [redacted]\n  login ada\n"),
    ("sshpass -p hunter2 ssh host", "sshpass -p [redacted] ssh host"),
    ("mysql -u root -phunter2 db", "mysql -u root -p[redacted] db"),
    ("redis-cli -h x -a hunter2 ping", "redis-cli -h x -a [redacted] ping"),
    ("docker login -u ada -p hunter2", "docker login -u ada -p [redacted]"),
    ("<password>hunter2</password>", "<password>[redacted]</password>"),
    ('<db:Password enc="no">hunter2</db:Password>', '<db:Password enc="no">[redacted]</db:Password>'),
    ("<apiKey>abcd1234</apiKey>", "<apiKey>[redacted]</apiKey>"),
    ('<add key="ApiKey" value="abcd1234" />', '<add key="ApiKey" value="[redacted]" />'),
]

BY_NAME = [
    ("DB_PASS=hunter2xyz", "DB_PASS=[redacted]"),
    ('"DB_PASS": "hunter2xyz"', '"DB_PASS": "[redacted]"'),
    ("smtp_pass = correcthorse", "smtp_pass = [redacted]"),
    ("dbPass: 'correcthorse'", "dbPass: '[redacted]'"),
    ("SECRET_KEY_BASE=0a1b2c3d4e5f", "SECRET_KEY_BASE=[redacted]"),
    ("MYSQL_PWD=hunter2", "MYSQL_PWD=[redacted]"),
    ("//registry.npmjs.org/:_authToken=abcdef12-3456", "//registry.npmjs.org/:_authToken=[redacted]"),
    ("AccountName=x;AccountKey=abcdEFGH1234+/==;", "AccountName=x;AccountKey=[redacted];"),
    (r'"password": "hun\"ter2xyz"', '"password": "[redacted]"'),
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
    "Use the pass: it is steep. bypass: the road; compass=north; a first pass: rough cut",
    "PASS: 12 tests; FAIL: 0; tests passed: 14; PASS=12 FAIL=0",
    "cookie: a small biscuit. Cookies: 3 boxes; cookie_policy: strict; cookies=True",
    "primary key: id; foreign_key: user_id; PRIMARY_KEY=id; sort_key=name",
    "session_id=20261115_190312_a1b2c3d4 and session=default; sid = 1000",
    "the JSESSIONID cookie is set by Tomcat",
    "auth=none; auth: oauth2; author: Ada; sig=3; signature: def f(x)",
    "docker run -p 5432:5432 x; mkdir -p build; ssh -p 2222 host; mysql -p; mysql -P 3306; cp -a src dst",
    "<password/> <token> </token> <password>$PASSWORD</password>",
    '<Button key="save" value="Save it"/>',
    "identified by the police; a password protected login page",
    "SECRET_KEY_BASE is read from the environment; set DB_PASS first; password=$DB_PASS",
    "The token is invalid, so the password has to be changed.",
    "The password is wrong. The password is required for login. The password is case-sensitive",
    "Das Passwort ist falsch. Das Kennwort ist nicht gesetzt. Passwort ist zu kurz, Passwort ist erforderlich",
    "the password is stored in ~/.netrc, the password is $DB_PASS, the password is <hidden>",
    "CACHE_KEY=users_by_id; PARTITION_KEY = region_name; PUBLIC_KEY=ssh-ed25519; OPENAI_KEY = os.environ",
    "pw: ok; pwm: 1000; powerpw=10; kpw=1234",
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
def test_secret_is_found_by_its_shape(secret: str) -> None:
    assert redact(f"here: {secret}, and there") == (f"here: {HIDDEN}, and there", 1)


@pytest.mark.parametrize(("text", "left"), [*BY_PLACE, *BY_NAME])
def test_secret_is_found_by_the_text_before_it(text: str, left: str) -> None:
    assert redact(text) == (left, 1)


@pytest.mark.parametrize("text", NO_SECRET)
def test_harmless_text_is_unchanged(text: str) -> None:
    assert redact(text) == (text, 0)


@pytest.mark.parametrize("text", [*BY_SHAPE, *(text for text, _ in [*BY_PLACE, *BY_NAME])])
def test_redacted_text_is_not_redacted_again(text: str) -> None:
    once, _ = redact(text)
    assert redact(once) == (once, 0)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Incorrect key sk-proj-****cdef given", "Incorrect key *** given"),
        ("key sk-abcdefghijkl refused", "key *** refused"),
        ("Authorization: Bearer opaque", "Authorization: Bearer ***"),
        ("STRIPE_KEY=abcdefgh is wrong", "STRIPE_KEY=*** is wrong"),
        ("postgres://ada:s3cret@db/x failed", "postgres://ada:***@db/x failed"),
        ("No module named 'sk-learn', pk_users", "No module named 'sk-learn', pk_users"),
        ("maximum context length is 8192 tokens: token count exceeds max_tokens: 4096",) * 2,
    ],
)
def test_error_text_loses_everything_that_begins_like_a_key(text: str, shown: str) -> None:
    assert hide_keys(text) == shown


def test_incomplete_private_key_is_redacted() -> None:
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


def test_secrets_inside_structures_are_redacted() -> None:
    value = [{"type": "text", "text": "password=hunter2"}, {"password": "x", "pin": 5, "token": None, "secret": "$S"}]
    assert redact_value(value) == (
        [{"type": "text", "text": f"password={HIDDEN}"}, {"password": HIDDEN, "pin": 5, "token": None, "secret": "$S"}],
        2,
    )


@pytest.mark.parametrize("name", ["JWT_SECRET_2", "TOKEN_PROD", "ENCRYPTION_SECRET_V2", "APP_API_KEY_OLD"])
def test_variable_with_a_suffix_in_its_name_is_redacted(name: str) -> None:
    assert redact(f"{name}=abcdefgh1") == (f"{name}={HIDDEN}", 1)
    assert redact_value({name: "abcdefgh1"}) == ({name: HIDDEN}, 1)


def test_numbers_and_lists_under_a_secret_name_are_redacted_unless_counts() -> None:
    given = {"password": 12345678, "tokens": 12345678, "token": ["abcd1234", "$TOKEN"], "secret": 3}
    assert redact_value(given) == (
        {"password": HIDDEN, "tokens": 12345678, "token": [HIDDEN, "$TOKEN"], "secret": 3},
        2,
    )


@pytest.mark.parametrize("name", ["Cookie", "set-cookie", "Authorization", "DB_PASS", "pass", "SECRET_KEY_BASE"])
def test_entry_is_redacted_by_its_name(name: str) -> None:
    assert redact_value({name: "abc"}) == ({name: HIDDEN}, 1)


def test_too_deep_structure_is_redacted_whole() -> None:
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
def test_adversarial_text_is_redacted_quickly(piece: str) -> None:
    assert redact(piece * (200_000 // len(piece)))[0]
