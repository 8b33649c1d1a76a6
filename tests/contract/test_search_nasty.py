"""Queries that broke other searches: each must neither fail nor miss its text, and some must not find theirs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.stores import Stores

PATIENCE_S = 10.0
EVERYTHING = 10_000

WORDS = ["".join(letters) for letters in islice(product("bcdfghjklmnpqrstvwxz", repeat=3), 5_000)]

PUNCTUATION = [
    (f"alpha{mark}omega", text)
    for mark in "'/,?.!;%#@&=<>$[]\\|~`^{}+:-_"
    for text in (f"see alpha{mark}omega there", "alpha omega apart")
]
AT_THE_END = [(f"gamma{mark}", f"see gamma{mark} there") for mark in "'/,?.!;%#@&=<>$[]\\|~`^{}+:-_)"]
AT_THE_START = [(f"{mark}delta", f"see {mark}delta there") for mark in "'/,?.!;%#@&=<>$[]\\|~`^{}+:_()"]
ALONE = [
    (mark, f"only {mark} here") for mark in ("'", "/", "%", "#", "$", "->", "=>", "::", "!!", "&&", "||", "<>", "_")
]

OF_OTHERS = [
    ("docker", "docker is up"),
    ("C++", "I write C++ and more"),
    ('"unterminated', "unterminated string"),
    ("(problem", "a problem here"),
    ("{test}", "a test here"),
    ("hello AND", "hello there"),
    ("OR world", "world there"),
    ("AND AND foo", "foo here"),
    ("a1 AND OR b1", "b1 alone"),
    ("hello or not", "hello there"),
    ("***", "three *** stars"),
    ("deploy*", "deployment went well"),
    ("de*ploy**", "de ploy"),
    ("* foo", "foo here"),
    ("foo *bar", "foo and foobar here"),
    ("TODO: fix", "TODO: fix this"),
    ("error:timeout", "error:timeout seen"),
    ("x^2", "x^2 is a square"),
    ("chat-send", "the chat-send thing"),
    ("P2.2", "see P2.2 there"),
    ("my-app.config.ts", "edit my-app.config.ts now"),
    ("sp_new", "call sp_new now"),
    ("chat-send*", "chat-sending works"),
    ('"my chat-send thing"', "this is my chat-send thing."),
    ('"exact phrase" OR chat-send', "an exact phrase"),
    ('"a" "b', "a and b"),
    ("NEAR(foo bar)", "NEAR(foo bar) is text"),
    ("NEAR/5", "NEAR/5 is text"),
    ("foo NEAR bar", "foo NEAR bar is text"),
    ("foo-", "foo- here"),
    ("foo--bar", "foo--bar here"),
    ("deploy-*", "deploy-staging"),
    ("what's", "so what's up"),
    ("a/b", "either a/b or not"),
    ("50%", "50% off"),
    ("#123", "see #123"),
    ("$HOME", "echo $HOME"),
    ("[x]", "- [x] done"),
    ("foo & bar", "foo & bar"),
    ("foo@bar.com", "write to foo@bar.com."),
    ("http://x.com/a-b", "see http://x.com/a-b now"),
    ("~/.hermes/state.db", "it is ~/.hermes/state.db"),
    ("content:foo", "content: foo"),
    ("{content tool_name}: foo", "content tool_name: foo"),
    ("-content:zzz -zzz first", "the first of them"),
    ("^foo", "foo at the start"),
    ("+foo +bar", "foo bar"),
    ("foo+bar", "foo+bar"),
    ('foo"bar', 'foo"bar'),
    ('foo""bar', 'foo""bar'),
    ('""', 'an empty "" string'),
    ('"', 'one " mark'),
    ("'", "one ' mark"),
    ("))((", "weird ))(( thing"),
    (")foo(", "a )foo( b"),
    ("foo)", "a foo) b"),
    ("((foo)", "a ((foo) b"),
    ("(((((foo OR bar)", "bar only"),
    ("foo AND (bar OR", "foo bar"),
    ("NOT", "NOT alone"),
    ("not", "not alone"),
    ("AND", "AND alone"),
    ("OR", "OR alone"),
    ("and or not", "and or not"),
    ("NOT NOT foo", "foo here"),
    ("--verbose", "run --verbose"),
    ("-- foo", "a -- foo"),
    ("-", "a - b"),
    ("- foo", "- foo"),
    ("->", "p -> q"),
    ("foo -", "foo - bar"),
]

INJECTIONS = [
    ("'; DROP TABLE messages; --", "'; DROP TABLE messages; --"),
    ("' OR '1'='1", "' OR '1'='1"),
    ('" OR 1=1 --', '" OR 1=1 --'),
    ("foo' UNION SELECT * FROM sessions", "foo' UNION SELECT * FROM sessions"),
    ("messages_fts MATCH", "messages_fts MATCH 'x'"),
    ("rowid:1", "rowid:1"),
    ("rank MATCH 'bm25(1)'", "rank MATCH 'bm25(1)'"),
    ("integrity-check", "run integrity-check"),
    ('"foo" * "bar"', "foo bar"),
    ("foo* bar*", "foobar barfoo"),
    (":expression", "bound as :expression"),
    ("?1", "bound as ?1"),
    ("%s %d {0}", "format %s %d {0}"),
    (r"\x00\u0000", r"escapes \x00\u0000"),
    ("¦", "a broken ¦ bar"),
    ("¦¦", "two ¦¦ bars"),
    ("foo¦bar", "foo¦bar"),
]

PATHS = [
    (r"C:\Users\bob\file.txt", r"open C:\Users\bob\file.txt"),
    (r"C:\Users", r"open C:\Users\bob\file.txt"),
    (r"bob\file.txt", r"open C:\Users\bob\file.txt"),
    (r"\\server\share", r"at \\server\share\x"),
    (r"C:\\Users\\bob", r'"C:\\Users\\bob"'),
    (r"%APPDATA%\npm", r"in %APPDATA%\npm"),
    ("/usr/local/bin", "in /usr/local/bin/python"),
    ("./run.sh", "run ./run.sh"),
    ("../up", "go ../up"),
    ("src/**/*.py", "glob src/**/*.py"),
    ("*.py", "glob src/**/*.py"),
    ("file:///etc/hosts", "read file:///etc/hosts"),
    ("https://example.com/a?b=c&d=e#f", "see https://example.com/a?b=c&d=e#f"),
    ("example.com", "see https://example.com/a?b=c&d=e#f"),
    ("user@host:/path", "scp user@host:/path ."),
    ("first.last+tag@mail.example.org", "to first.last+tag@mail.example.org"),
    ("192.168.0.1:8080", "at 192.168.0.1:8080"),
    ("::1", "at [::1]:80"),
]

ASIAN = [
    ("记忆断裂", "发生了记忆断裂的问题"),
    ("记忆断裂*", "发生了记忆断裂的问题"),
    ("记忆*", "发生了记忆断裂的问题"),
    ("忆断", "发生了记忆断裂的问题"),
    ("断", "发生了记忆断裂的问题"),
    ("通信", "Agent通信协议"),
    ("Agent通信", "Agent通信协议"),
    ("agent通信", "Agent通信协议"),
    ("AGENT 通信", "Agent通信协议"),
    ("广西 OR 桂林 OR 漓江", "桂林山水"),
    ("广西 OR 桂林 OR 漓江", "漓江"),
    ("广西 桂林", "广西的桂林"),
    ("广西 NOT 北京", "广西壮族"),
    ("广西 -北京", "广西壮族"),
    ("记忆系统 OR 断裂连接", "断裂连接"),
    ("sp_new 血管瘤", "sp_new 血管瘤"),
    ('"foo bar" 记忆断裂', "foo bar 记忆断裂"),
    ("my-app.config.ts 设置", "my-app.config.ts 的设置"),
    ("100%完成", "任务100%完成了"),
    ('"100%完成"', "任务100%完成了"),
    ("*%完*", "任务100%完成了"),
    ("a_b中文", "a_b中文"),
    ("C:\\用户\\文件", "C:\\用户\\文件.txt"),
    ("世界！", "你好，世界！"),
    ("你好，世界", "你好，世界！"),
    ("「引用」", "他说「引用」"),
    ("(世界)", "世界"),
    ("第3章", "第3章开始"),
    ("3章", "第3章开始"),
    ("２０２４年", "2024年"),
    ("2024年", "２０２４年"),
    ("こんにちは", "こんにちは世界"),
    ("カメラ", "ｶﾒﾗを買う"),
    ("ｶﾒﾗ", "カメラを買う"),
    ("ガ", "ｶﾞｽ"),
    ("東京タワー", "東京タワーへ"),
    ("京タ", "東京タワーへ"),
    ("コンピュータ・システム", "コンピュータ・システム"),
    ("안녕", "안녕하세요"),
    ("하세", "안녕하세요"),
    ("한국어 검색", "한국어로 검색"),
    ("ภาษาไทย", "ผมพูดภาษาไทยได้"),
    ("น้ำ", "ดื่มน้ำเย็น"),
    ("ລາວ", "ພາສາລາວ"),
    ("မြန်မာ", "မြန်မာစာ"),
    ("ភាសា", "ភាសាខ្មែរ"),
    ("བོད", "བོད་ཡིག"),
    ("𠀀𠀁", "古字𠀀𠀁也"),
    ("𪜀", "𪜀"),
    ("㈱", "㈱山田"),
    ("豈", "豈"),
]

INVISIBLE = [
    ("zero\u200dwidth", "zerowidth"),
    ("zerowidth", "zero\u200dwidth"),
    ("\ufefffoo", "foo here"),
    ("soft\u00adhyphen", "softhyphen"),
    ("\u202eltr\u202c", "ltr"),
    ("ltr", "\u202eltr\u202c"),
    ("\u200fשלום\u200f", "שלום"),
    ("שָׁלוֹם", "שלום עולם"),
    ("שלום", "שָׁלוֹם עולם"),
    ("مُحَمَّد", "محمد رسول"),
    ("محمد", "مُحَمَّد رسول"),
    ("مـحـمـد", "محمد"),
    ("أحمد", "احمد"),
    ("cafe\u0301", "café noir"),
    ("café", "cafe\u0301 noir"),
    ("CAFÉ", "café noir"),
    ("Z̷a̷l̷g̷o̷", "zalgo text"),
    ("zalgo", "Z̷̧a̷͝l̶̕g̴͘o̸͒"),
    ("नमस्ते", "नमस्ते दुनिया"),
    ("தமிழ்", "தமிழ் மொழி"),
    ("non\u00a0breaking", "non breaking"),
    ("ideographic\u3000space", "ideographic space"),
    ("line\u2028separator", "line separator"),
    ("tab\tbed", "tab bed"),
    ("a1\0b2", "a1 b2"),
    ("nul\0", "nul"),
    ("\0nul", "nul"),
    ("unit\x1fsep", "unit sep"),
    ("bell\x07bell", "bell bell"),
    ("lone\ud800", "lone surrogate"),
    ("\udfffsurrogate", "lone surrogate"),
    ("lone \ud83d surrogate", "lone surrogate"),
    ("half\ud83d", "half\ud83d"),
    ("*lf\ud83d*", "half\ud83d"),
    ("*ef\0af*", "bef\0aft"),
    ('"\0" bef', "bef\0aft"),
    ("naïve", "naive"),
    ("STRASSE", "Straße"),
    ("straße", "STRASSE"),
    ("lodz", "Łódź"),
    ("ﬁle", "file name"),
    ("ｆｉｌｅ", "file name"),
    ("x²", "x2"),
    ("istanbul", "İstanbul"),
    ("ΛΟΓΟΣ", "λόγος"),
    ("елка", "ёлка"),
]

EMOJI = [
    ("👍", "good 👍🏽"),
    ("👍🏿", "good 👍"),
    ("👨‍👩‍👧", "family 👨‍👩‍👧 photo"),
    ("👩", "family 👨‍👩‍👧 photo"),
    ("👩‍💻", "coder 👩🏽‍💻"),
    ("🇩🇪", "flag 🇩🇪"),
    ("🏴󠁧󠁢󠁳󠁣󠁴󠁿", "flag 🏴󠁧󠁢󠁳󠁣󠁴󠁿"),
    ("1️⃣", "step 1️⃣"),
    ("#️⃣", "press #️⃣"),
    ("❤️", "I ❤ it"),
    ("❤", "I ❤️ it"),
    ("😀😀", "ha 😀😀😀"),
    ("😀 OR 😢", "sad 😢"),
    ("good -👎", "good 👍🏽"),
    ("🎉party", "🎉party🎉"),
    ("€5", "costs €5"),
    ("→", "a → b"),
    ("©", "© 2024"),
    ("∞", "to ∞"),
    ("☃️", "a ☃ man"),
    ("🫠", "I 🫠"),
    ("𝒻𝓊𝓃", "fun"),
]

LITERALS = [
    ("100%", "100% sure"),
    ("a_b", "a_b here"),
    ('"100%"', "100% sure"),
    ("*0%*", "100% sure"),
    ("*a_b*", "a_b here"),
    ("*_*", "a_b here"),
    ("*%*", "100% sure"),
    ("*\\*", r"C:\Users"),
    ('*"*', 'say "hi"'),
    ("*'*", "it's"),
    ("*a b*", "x a b y"),
    ("**bold**", "some **bold** text"),
    ("*italic*", "some *italic* text"),
    ("*.*", "glob *.* all"),
    ("*<b>*", "a <b> tag"),
]

LONG = [
    (" ".join(WORDS), " ".join(WORDS[:200])),
    (" OR ".join(WORDS), f"{WORDS[77]} only"),
    ('"' + " ".join(WORDS) + '"', " ".join(WORDS)),
    ("-".join(WORDS), " ".join(WORDS)),
    ("ninth " + " ".join(f"-none{number}" for number in range(500)), "the ninth here"),
    ("x" * 20_000, "x" * 20_000),
    ("世" * 3_000, "世" * 3_000),
    ("(" * 60 + "deep" + ")" * 60, "deep down"),
    ("(" * 60 + "deep", "deep down"),
    ("deep" + ")" * 5_000, "deep down"),
    ("NOT " * 2_000 + "deep", "deep down"),
    ("- " * 2_000 + "deep", "deep down"),
    ('" ' * 2_001 + "deep", "deep down"),
    ("deep " + "* " * 2_000, "deep down"),
    ("deep " + "AND " * 2_000 + "down", "deep down"),
    ("deep OR " * 2_000 + "down", "deep down"),
    ("deep " + "!" * 20_000, "deep down"),
    ("(deep OR (down AND (deep OR (down AND (deep OR (down))))))", "deep"),
]

FOUND = [
    *PUNCTUATION,
    *AT_THE_END,
    *AT_THE_START,
    *ALONE,
    *OF_OTHERS,
    *INJECTIONS,
    *PATHS,
    *ASIAN,
    *INVISIBLE,
    *EMOJI,
    *LITERALS,
    *LONG,
]

NOT_FOUND = [
    ("docker", "dockerfile"),
    ("C++", "plain C"),
    ("C#", "plain C"),
    ("C#", "I write C++ and more"),
    ("foo-bar", "foobar"),
    ("foo-bar", "bar foo"),
    ('"foo bar"', "foo x bar"),
    ("a_b", "axb"),
    ('"a_b"', "aXb"),
    ("*a_b*", "axb"),
    ("*0%*", "1000 sure"),
    ("100%完成", "任务100个完成"),
    ("*%完*", "任务100个完成"),
    ("记忆断裂", "记忆的断裂"),
    ("断裂记忆", "发生了记忆断裂的问题"),
    ("广西 桂林", "广西壮族"),
    ("广西 NOT 桂林", "广西的桂林"),
    ("通信 -agent", "Agent通信协议"),
    ("Agent通信", "Agent的通信"),
    ("がく", "かく"),
    ("カ", "ガ"),
    ("alpha omega -alpha", "alpha omega apart"),
    ("deploy* -deployment", "deployment went well"),
    ("foo AND bar", "foo here"),
    ("NOT foo", "foo here"),
    ("-foo", "foo here"),
    ("foo NOT here", "foo here"),
    ("(foo OR hello) bar", "hello there"),
    ("content:foo", "foo here"),
    ("rowid:1", "see #123"),
    ("'; DROP TABLE messages; --", f"{WORDS[77]} only"),
    ("👎", "good 👍🏽"),
    ("🇫🇷", "flag 🇩🇪"),
    ("€5", "costs €6"),
    ("1.2.3", "1.2.4"),
    ("a/b", "b/a"),
    (r"C:\Users\alice", r"open C:\Users\bob\file.txt"),
    ("foo@bar.org", "write to foo@bar.com."),
    ("->", "p <- q"),
    ('"++"', "plus + plus"),
    ("é", "e\u0301x"),
    ("世界地", "你好，世界！"),
]


def text_of(pair: tuple[str, str]) -> str:
    return pair[1]


@pytest.fixture(scope="module", params=["unindexed", "indexed"])
def asked(
    request: pytest.FixtureRequest, stores: Stores, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SessionDBProvider, dict[str, int]]]:
    """A store that holds every text once, and their ids; nobody changes it."""
    directory = tmp_path_factory.mktemp("nasty")
    store = stores.open(directory, "main", FakeClock(), read_only=False)
    store.create_session("s", "cli")
    texts = list(dict.fromkeys(map(text_of, [*FOUND, *NOT_FOUND])))
    ids = store.append_messages("s", [{"role": "user", "content": text} for text in texts])
    if request.param == "indexed":
        store.close()
        store = stores.open(directory, "main", FakeClock(), read_only=False)
    yield store, dict(zip(texts, ids, strict=True))
    store.close()


def name_of(pair: tuple[str, str]) -> str:
    query = pair[0] if len(pair[0]) < 60 else f"{pair[0][:57]}..."
    return query.encode("ascii", "backslashreplace").decode()


@pytest.mark.parametrize("pair", FOUND, ids=name_of)
def test_query_finds_its_text(asked: tuple[SessionDBProvider, dict[str, int]], pair: tuple[str, str]) -> None:
    store, ids = asked
    query, text = pair
    results = store.search_messages(query, limit=EVERYTHING, budget_s=PATIENCE_S)
    assert ids[text] in [hit["id"] for hit in results]
    assert (results.complete, results.degraded) == (True, False)


@pytest.mark.parametrize("pair", NOT_FOUND, ids=name_of)
def test_query_does_not_find_another_text(
    asked: tuple[SessionDBProvider, dict[str, int]], pair: tuple[str, str]
) -> None:
    store, ids = asked
    query, text = pair
    results = store.search_messages(query, limit=EVERYTHING, budget_s=PATIENCE_S)
    assert ids[text] not in [hit["id"] for hit in results]


def test_there_are_enough_of_them() -> None:
    assert len({query for query, _ in FOUND}) >= 170
