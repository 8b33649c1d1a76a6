"""Programs that a user could write: one without a mistake, and one with a mistake on every line."""

from __future__ import annotations

RIGHT = """
import asyncio
from pathlib import Path

from hermes_constants import get_hermes_home
from hermes_state import (
    DEFAULT_DB_PATH,
    EVERYBODY,
    AsyncSessionDB,
    Conflict,
    ConversationMessage,
    HermesError,
    ListedSession,
    MessageRow,
    Owner,
    Receipt,
    Row,
    SearchHit,
    SearchResults,
    SessionDB,
    SessionDBProvider,
    SessionRow,
    new_session_id,
    open_session_db,
    owner_of,
)

home: Path = get_hermes_home()
path: Path = DEFAULT_DB_PATH
owner: Owner = owner_of("telegram", "4711")
asker = owner if owner.stored else EVERYBODY


def title_of(row: SessionRow) -> str:
    return row["title"] or row["preview"] or row["id"]


def next_page(db: SessionDBProvider, last: ListedSession | None) -> list[ListedSession]:
    return db.list_sessions_rich(limit=10, order_by_last_active=True, after=last["cursor"] if last else None)


def fill(db: SessionDB) -> int:
    session_id: str = new_session_id()
    db.create_session(session_id, "cli", model="m", model_config={"temperature": 0}, child_kind="branch")
    db.ensure_session(session_id, "cli", cwd="/tmp", started_at=1.5)
    number: int = db.append_message(session_id, "user", [{"type": "text", "text": "hi"}], timestamp=1.0)
    calls = [{"id": "c", "function": {"name": "terminal", "arguments": "{}"}}]
    db.append_message(session_id, "assistant", None, tool_calls=calls)
    db.append_messages(session_id, [{"role": "user", "content": "hello"}])
    started = db.start_session("t", "cli", {"role": "user", "content": "x"}, title="T", cwd="/", model="m")
    return number + started["message_id"]


def read(db: SessionDB) -> list[str]:
    session = db.get_session("s")
    said: list[str] = [title_of(session)] if session is not None else []
    messages: list[MessageRow] = db.get_messages("s")
    for message in messages:
        if isinstance(message["content"], str):
            said.append(message["content"])
    conversation: list[ConversationMessage] = db.get_messages_as_conversation("s", include_ancestors=True)
    said += [message["role"] for message in conversation]
    found: SearchResults = db.search_messages("docker", sort="newest")
    best: SearchHit = found[0]
    said += [best["snippet"], best["context"][0]["content"], found.path]
    said += [event["kind"] for event in db.list_usage_events("s")]
    cost: float | None = db.usage_by_model()[0]["total_cost"]
    return [*said, str(cost), db.health()["provider"]]


def tidy(db: SessionDB) -> int:
    receipt: Receipt = db.delete_with_receipt(["s"], secure=True)
    try:
        copy = db.export_session("s")
        if copy is not None:
            db.import_session(copy, on_conflict="merge")
    except (Conflict, HermesError) as error:
        print(error.code, error.hint)
    return receipt.sessions


async def wait() -> str:
    async with await AsyncSessionDB.open(lambda: SessionDB(home / "state.db")) as db:
        await db.create_session("s", "cli")
        rows = await db.list_sessions_rich()
        found = await db.search_messages("x", sort="oldest")
        async for session in db.iter_export():
            print(session["messages"][0]["uid"])
        return rows[0]["id"] + found[0]["snippet"]


with SessionDB(db_path=path) as db, open_session_db() as configured:
    fill(db)
    read(db)
    asyncio.run(wait())
    row: Row = {**next_page(configured, None)[0]}
"""

HEADER = """
from hermes_constants import get_hermes_home
from hermes_state import DEFAULT_DB_PATH, EVERYBODY, AsyncSessionDB, SessionDB
from hermes_state import new_session_id, open_session_db, owner_of


async def mistaken(db: SessionDB, later: AsyncSessionDB) -> None:
"""

MISTAKES = [
    # the modules
    "get_hermes_home() + 1",
    "DEFAULT_DB_PATH + 1",
    "new_session_id('now')",
    "new_session_id().nothing",
    "open_session_db(readonly=True)",
    "owner_of(4711)",
    "EVERYBODY.name.nothing",
    "import hermes_state; hermes_state.no_such_name",
    "from hermes_state import no_such_name",
    # names and parameters
    "SessionDB(5)",
    "SessionDB(readonly=True)",
    "db.no_such_method()",
    "db.create_session('s')",
    "db.create_session(5, 'cli')",
    "db.create_session('s', 'cli', child_kind='cousin')",
    "db.create_session('s', 'cli', modle='m')",
    "db.ensure_session('s', 'cli', cwdd='/')",
    "db.start_session('s', 'cli', {'role': 'user'}, titel='x')",
    "db.append_message('s', content='x')",
    "db.append_message('s', 'user', b'bytes')",
    "db.append_message('s', 'user', 5)",
    "db.append_message('s', 'user', 'x', token_count='5')",
    "db.search_messages('x', sort='latest')",
    "db.search_messages('x', limit='3')",
    "db.search_messages(5)",
    "db.list_sessions_rich(limit=1.5)",
    "db.list_sessions_rich(order_by='last_active')",
    "db.import_session({}, on_conflict='replace')",
    "db.set_session_title('s', 5)",
    "db.prune_sessions(older_than_days='90')",
    "db.update_token_counts('s', input_tokens='5')",
    # results
    "db.get_session('s')['id']",
    "db.get_messages('s')[0]['contents']",
    "db.get_messages('s')[0]['content'].upper()",
    "db.get_messages('s')[0]['id'].upper()",
    "db.get_messages_as_conversation('s')[0]['text']",
    "db.list_sessions_rich()[0]['name']",
    "db.list_sessions_rich()[0]['title'].upper()",
    "db.search_sessions()[0]['cursor']",
    "db.search_messages('x')[0]['score']",
    "db.search_messages('x').total",
    "db.get_messages_around('s', 1)['messages']",
    "db.get_anchored_view('s', 1)['bookends']",
    "db.export_all()[0]['message']",
    "db.usage_by_model()[0]['cost']",
    "db.top_sessions()[0]['tokens']",
    "db.list_usage_events('s')[0]['when']",
    "db.list_rewinds('s')[0]['when']",
    "db.rewind_to_message('s', 1)['count']",
    "db.get_ancestors('s')[0]['source']",
    "db.get_descendants('s')[0]['source']",
    "db.branch_session('s', 't')['id']",
    "db.delete_with_receipt(['s']).session",
    "db.preview_prune().message",
    "db.maybe_auto_prune_and_vacuum()['deleted']",
    "db.import_database('x')['rows']",
    "db.health()['okay']",
    "db.append_message('s', 'user').bit_length",  # right, to see that the others are not wrong for another reason
    # awaited
    "await later.no_such_method()",
    "await later.append_message('s', 'user', 5)",
    "await later.search_messages('x', sort='latest')",
    "await later.create_session('s', 'cli', child_kind='cousin')",
    "await later.ensure_session('s', 'cli', cwdd='/')",
    "(await later.get_session('s'))['id']",
    "(await later.get_messages('s'))[0]['contents']",
    "(await later.list_sessions_rich())[0]['name']",
    "(await later.search_messages('x')).total",
    "(await later.delete_with_receipt(['s'])).session",
    "(await later.health())['okay']",
    "later.get_session('s')['id']",
    "[row['name'] async for row in later.iter_export()]",
    "await AsyncSessionDB.open('state.db')",
]
