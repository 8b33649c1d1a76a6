"""Random messages in many scripts, and random queries about them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hermes_state import Sort
from tests.property.naive_query import is_row_of_words, read
from tests.property.naive_search import Branch, Leaf, Message, Tree
from tests.property.naive_words import UNITS, flat, items

SOURCES = ("cli", "telegram", "Web UI", "日本")
ROLES = ("user", "assistant", "tool", "system")
OWNERS = (None, "telegram:1", "telegram:10", "Web UI:a b")
EPOCH = 1_700_000_000.0


def _each(listed: str) -> tuple[str, ...]:
    return tuple(listed.split())


LATIN = _each(
    "docker deploy error timeout server table index user name agent memory the a of and or not naïve café Café cafe "
    "straße STRASSE strasse Łódź lodz Ærø aero smørrebrød coöperate résumé RÉSUMÉ jalapeño señor façade œuvre ﬁle ﬁnal "
    "ＦＵＬＬ ｗｉｄｔｈ ﬀ İstanbul ıslak Đà x² H₂O"
)
OTHER = _each(
    "привет Привет мир Йод ёлка Ελλάδα ελλαδα λόγος ΛΌΓΟΣ مُحَمَّد محمد كِتَاب كتاب مـحـمـد שָׁלוֹם שלום עִבְרִית हिन्दी "
    "भाषा नमस्ते तमिल বাংলা தமிழ்"
)
EMOJI = _each("👍 👍🏽 👍🏿 👨‍👩‍👧 👩‍💻 🇩🇪 🇫🇷 🇩🇪🇫🇷 1️⃣ ❤️ ❤ 😀 😀😀 🎉 ♥ € €5 ₿ → ∞ ©")
CODE = _each(
    "getUserName get_user_name getusername username HTTPServer parseXML utf8 sha256 sp_new my-app.config.ts a1b2c3d4e5 "
    "OAuth2Client deadBEEF99aa C++ C# F# C c i++ a++b foo() foo.bar foo::bar userID iPhone OpenAI __init__ self.name "
    "API_KEY=abc a=b x<y p->q --flag key:value array[0] $HOME #123 @bob 50% 100% a&b it's don't e.g. R&D"
)
PLACES = _each(
    r"/usr/local/bin ~/.hermes/state.db C:\Users\bob\file.txt \\server\share ./run.sh src/hermes/query/parse.py a/b "
    "https://example.com/a-b?q=1#top http://x.com foo@bar.com first.last@mail.example.org file:///tmp/x"
)
NUMBERS = _each("1 2 42 1.2 1.2.3 v1.2.3 v1.2 V2.0 python3.11 python3 3.11 2024-05-01 12:30 1,000 007 -5 +1")
IDS = _each("call_42 call_7f toolu_01AbcdEfgh call-GetWeather-12 chatcmpl-9xY8z7 3f2504e0-4f89-41d3 a1b2c3d4e5")
COMMANDS = _each("ls -la git log -n 5 --oneline tar -xzf a.tar grep -rn -i foo docker run -d -p 80")
NOISE = _each("++ -> => :: ... -- / | ~ ## <!-- ¿ — … 。 、 「 」 ・")

CHINESE = "记忆断裂通信系统世界"
KANA = "こんにちはカメラテガギー"
HALF_WIDTH = ("ｶ", "ﾒ", "ﾗ", "ｶﾞ", "ｷﾞ", "ﾃ", "ｰ")
HANGUL = "안녕하세요한국"
THAI = ("สวัส", "ดี", "ครับ", "กรุง", "เทพ", "ภาษา", "ไทย", "น้ำ")

SEPARATORS = (" ", " ", " ", " ", " ", "\n", ", ", ". ", " - ", "/", ": ", "  ", "\t", "_", "; ", "! ", "\u00a0")
RARE_SEPARATORS = ("\0", "\u3000", "\r\n", "\x1f")
UNTYPABLE = '"“”„«»()*\0'
BARE_NOISE = tuple(each for each in NOISE if not items(each))

_quoted = re.compile(r'"[^"]*"|“[^”]*”|«[^»]*»')
_operator = re.compile(r"\((?!\))|(?<!\S)(?:AND|OR|NOT)(?!\S)|(?<!\S)-(?![->\s]|$)")


@dataclass(frozen=True)
class Query:
    """The typed text of a query, its tree, its filters and its order."""

    typed: str
    tree: Tree
    filters: dict[str, Any]
    sort: Sort | None
    literal: Tree | None = None
    """What the query means if a message has this."""
    has_operators: bool = True

    def admits(self, message: Message) -> bool:
        """Whether the filters admit a message."""
        filters = self.filters
        return (
            (message.active or filters.get("include_inactive", False))
            and message.source in filters.get("source_filter", SOURCES)
            and message.source not in filters.get("exclude_sources", ())
            and message.role in filters.get("role_filter", ROLES)
            and ("owner" not in filters or message.owner == filters["owner"])
            and ("session_ids" not in filters or message.session in filters["session_ids"])
            and message.session not in filters.get("exclude_session_ids", ())
            and filters.get("since", message.timestamp) <= message.timestamp <= filters.get("until", message.timestamp)
        )


def draft(random: Random, at: float) -> dict[str, Any]:
    """Return a message for `append_messages`."""
    role = random.choice(ROLES)
    content: Any = text(random)
    if random.random() < 0.1:
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo"}}
        content = [{"type": "text", "text": content}, picture, {"type": "text", "text": text(random)}]
    found: dict[str, Any] = {"role": role, "content": content, "timestamp": at}
    if role == "tool":
        found["tool_name"] = random.choice(("terminal", "web_search", "読む", "readFile"))
    if role == "assistant" and random.random() < 0.3:
        arguments = {random.choice(("path", "query", "cmd")): text(random) for _ in range(random.randint(1, 2))}
        call = {
            "id": random.choice(IDS),
            "type": "function",
            "function": {
                "name": random.choice(("terminal", "read_file")),
                "arguments": json.dumps(arguments, ensure_ascii=random.random() < 0.5),
            },
        }
        found |= {"tool_calls": [call], "content": random.choice((content, None, ""))}
    return found


def text(random: Random) -> str:
    """Return a few words in a few scripts."""
    content = ""
    for _ in range(random.randint(1, 9)):
        content += _piece(random) + random.choice(SEPARATORS if random.random() < 0.97 else RARE_SEPARATORS)
    return content.rstrip() if random.random() < 0.8 else content


def _piece(random: Random) -> str:
    kinds: Sequence[Sequence[str]] = (LATIN, LATIN, OTHER, EMOJI, CODE, PLACES, NUMBERS, NOISE, COMMANDS, IDS)
    if random.random() < 0.3:
        return _run(random)
    if random.random() < 0.1:
        return _measure(random)
    piece = random.choice(random.choice(kinds))
    return unicodedata.normalize("NFD", piece) if random.random() < 0.1 else piece


def _measure(random: Random) -> str:
    """Return a number with a unit, in one or in two words."""
    unit = random.choice(random.choice((UNITS, ("ms", "kHz", "GiB", "S"))))
    return (
        f"{random.choice((1, 5, 42, 500, '1.5'))}{random.choice(('', '', ' ', chr(0xA0), '-', ' x ', ' мир '))}{unit}"
    )


def _run(random: Random) -> str:
    """Return characters of a script without spaces, perhaps with other text next to them."""
    script = random.choice((CHINESE, CHINESE, KANA, HANGUL, HALF_WIDTH, THAI))
    run = "".join(random.choice(script) for _ in range(random.randint(1, 5)))
    if random.random() < 0.1:
        run = unicodedata.normalize("NFD", run)
    if random.random() < 0.25:
        run = random.choice(("docker", "2", "agent", "😀")) + run
    if random.random() < 0.25:
        run += random.choice(("docker", "3", "は", "!", "。", "%", "👍"))
    return run


def query(random: Random, messages: Sequence[Message]) -> Query:
    """Return a query that some of the messages may match."""
    filters = _filters(random, messages)
    sort: Sort | None = random.choice((None, "newest", "oldest"))
    chance = random.random()
    if chance < 0.25:
        return as_query(_row_of_words(random, messages), None, filters, sort)
    if chance < 0.3:
        kind, first, second = random.choice(("and", "or")), *random.choices(BARE_NOISE, k=2)
        tree: Tree = Branch(kind, (Leaf(first, "part"), Leaf(second, "part")))
        return as_query(f"{first} {kind.upper()} {second}", tree, filters, sort)
    tree = _tree(random, messages, random.choice((0, 0, 1, 1, 2, 3)))
    return as_query(render(random, tree), tree, filters, sort)


def as_query(typed: str, tree: Tree | None, filters: dict[str, Any], sort: Sort | None) -> Query:
    """Return a query; a row of words means what the naive reader says, any other text means the tree."""
    if is_row_of_words(typed):
        meaning = read(typed)
        return Query(typed, meaning.tree, filters, sort, meaning.literal, meaning.has_operators)
    assert tree is not None
    return Query(typed, tree, filters, sort, has_operators=_operator.search(_quoted.sub("x", typed)) is not None)


def _row_of_words(random: Random, messages: Sequence[Message]) -> str:
    """Return words of a message and others, perhaps with a minus or with a small operator at an end."""
    while True:
        content = random.choice(messages).text.split()
        first = random.randrange(len(content) or 1)
        words = content[first : first + random.randint(1, 8)]
        if random.random() < 0.4:
            words += [_piece(random) for _ in range(random.randint(1, 6))]
            random.shuffle(words)
        if random.random() < 0.3:
            words = [f"-{word}" if random.random() < 0.3 else word for word in words]
        if random.random() < 0.2:
            words.insert(random.choice((0, len(words))), random.choice(("and", "or", "not")))
        typed = " ".join(words)
        if words and is_row_of_words(typed) and not any(character in UNTYPABLE for character in typed):
            if random.random() < 0.1:
                typed += "*"
            return typed


def _tree(random: Random, messages: Sequence[Message], depth: int) -> Tree:
    if depth == 0:
        return _leaf(random, messages)
    kind = random.choice(("and", "and", "or", "or", "not"))
    count = 1 if kind == "not" else random.randint(2, 3)
    children = tuple(_tree(random, messages, random.randrange(depth)) for _ in range(count))
    (first, *_) = children
    # Two negations cancel each other, as in the parser.
    if kind == "not" and isinstance(first, Branch) and first.kind == "not":
        return first.children[0]
    return Branch(kind, children)


def _leaf(random: Random, messages: Sequence[Message]) -> Leaf:
    while True:
        leaf = _some_leaf(random, random.choice(messages).text)
        typed = leaf.text
        if not typed or typed != typed.strip() or any(character in UNTYPABLE for character in typed):
            continue
        if leaf.kind in ("word", "prefix") and (any(map(str.isspace, typed)) or typed.lower() in ("and", "or", "not")):
            continue
        if typed[0] == "-" and leaf.kind in ("word", "prefix") and typed[:2] not in ("--", "->"):
            continue
        if flat(typed) if leaf.kind == "part" else items(typed):
            return leaf


def _some_leaf(random: Random, content: str) -> Leaf:
    chance = random.random()
    kind = "word" if random.random() < 0.9 else "phrase"
    if chance < 0.35:
        return Leaf(_change_spelling(random, _piece(random)), kind)
    if chance < 0.5:
        return Leaf(_change_spelling(random, random.choice(content.split() or ["x"])), kind)
    start = random.randrange(len(content) or 1)
    if chance < 0.6:
        return Leaf(content[start : start + random.randint(1, 4)])
    if chance < 0.72:
        words = content.split()
        first = random.randrange(len(words) or 1)
        return Leaf(" ".join(words[first : first + random.randint(1, 4)]), "phrase")
    if chance < 0.86:
        word = random.choice(content.split() or ["x"])
        return Leaf(word[: random.randint(1, len(word))], "prefix")
    return Leaf(content[start : start + random.randint(1, 8)], "part")


def _change_spelling(random: Random, word: str) -> str:
    chance = random.random()
    if chance < 0.15:
        return word.upper()
    if chance < 0.3:
        return word.lower()
    if chance < 0.36:
        return "".join(chr(ord(each) + 0xFEE0) if each.isascii() and each.isalnum() else each for each in word)
    if chance < 0.42:
        return unicodedata.normalize("NFD", word)
    return word


def render(random: Random, tree: Tree, *, is_inner: bool = False) -> str:
    """Return one way to type a tree."""
    if isinstance(tree, Leaf):
        return _type_leaf(random, tree)
    if tree.kind == "not":
        inner = render(random, tree.children[0], is_inner=True)
        sign = random.choice(("NOT ", "-")) if inner[0] not in "->" else "NOT "
        return f"({sign}{inner})" if is_inner and random.random() < 0.5 else f"{sign}{inner}"
    joint = " OR " if tree.kind == "or" else random.choice((" ", " ", " AND "))
    content = joint.join(render(random, child, is_inner=True) for child in tree.children)
    return f"({content})" if is_inner else content


def _type_leaf(random: Random, leaf: Leaf) -> str:
    if leaf.kind == "prefix":
        return f"{leaf.text}*"
    if leaf.kind == "part":
        if any(map(str.isspace, leaf.text)):
            return f'*"{leaf.text}"*'
        return f"*{leaf.text}*" if items(leaf.text) or random.random() < 0.5 else f'"{leaf.text}"'
    if leaf.kind == "phrase":
        return random.choice(('"{}"', '"{}"', "“{}”", "«{}»")).format(leaf.text)
    return leaf.text


def _filters(random: Random, messages: Sequence[Message]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if random.random() < 0.5:
        return found
    sessions = sorted({message.session for message in messages})
    times = sorted(message.timestamp for message in messages)
    offers = {
        "source_filter": random.sample(SOURCES, random.randint(0, 3)),
        "exclude_sources": random.sample(SOURCES, random.randint(0, 3)),
        "role_filter": random.sample(ROLES, random.randint(1, 3)),
        "owner": random.choice(OWNERS[1:]),
        "session_ids": random.sample(sessions, random.randint(1, len(sessions))),
        "exclude_session_ids": random.sample(sessions, random.randint(0, 2)),
        "since": random.choice(times) + random.choice((0, 0.5, -0.5)),
        "until": random.choice(times) + random.choice((0, 0.5, -0.5)),
        "include_inactive": True,
    }
    for name in random.sample(sorted(offers), random.randint(1, 3)):
        found[name] = offers[name]
    return found
