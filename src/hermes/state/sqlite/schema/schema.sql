-- The whole schema of a SQLite store: the sum of ../migrations/*.sql. `make schema` writes this file; do not edit it.
--
-- Ledger: 0001_store d9dfaba7
-- Ledger: 0002_search 9c4b128e
-- Ledger: 0003_insights 2cdd8e29
-- Ledger: 0004_parts 3433750f
-- Ledger: 0005_owners d60c8ecc
-- Ledger: 0006_replaced 935e72c1
-- Ledger: 0007_stems 00000000
-- Ledger: 0008_lanes 49c8430a
-- Ledger: 0009_one_index 73664809
-- Ledger: 0010_marked_lanes 154aa674
-- Ledger: 0011_approvals 1bb1fe09

CREATE TABLE IF NOT EXISTS schema_version (
    version INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS state_meta (
    key   TEXT PRIMARY KEY,
    value TEXT
);

-- The migrations that were applied beyond schema version 11, by name. A file with this table is a store of Hermes.
CREATE TABLE IF NOT EXISTS hermes_ledger (
    name       TEXT PRIMARY KEY,
    checksum   TEXT NOT NULL,
    applied_at REAL NOT NULL
);

CREATE TABLE IF NOT EXISTS sessions (
    id                 TEXT PRIMARY KEY,
    source             TEXT NOT NULL,
    user_id            TEXT,
    owner              TEXT,                        -- who may see it; NULL: the terminal
    parent_session_id  TEXT,
    child_kind         TEXT,                        -- compression, branch, delegate, reset, import; ?: not yet known
    chain_root         TEXT,                        -- first session of its compression chain; NULL: itself
    listed             INTEGER NOT NULL DEFAULT 1,  -- stands in lists by itself
    archived           INTEGER NOT NULL DEFAULT 0,
    pinned             INTEGER NOT NULL DEFAULT 0,
    started_at         REAL NOT NULL,
    last_active        REAL,                        -- newest message, else the start
    chain_active       REAL,                        -- the same over the compression chain that begins here
    active_tick        INTEGER,                     -- chain_active in hundredths of a second
    ended_at           REAL,
    end_reason         TEXT,
    message_count      INTEGER DEFAULT 0,
    tool_call_count    INTEGER DEFAULT 0,
    rewind_count       INTEGER NOT NULL DEFAULT 0,
    api_call_count     INTEGER DEFAULT 0,
    input_tokens       INTEGER DEFAULT 0,
    output_tokens      INTEGER DEFAULT 0,
    cache_read_tokens  INTEGER DEFAULT 0,
    cache_write_tokens INTEGER DEFAULT 0,
    reasoning_tokens   INTEGER DEFAULT 0,
    estimated_cost_usd REAL,
    actual_cost_usd    REAL,
    cost_status        TEXT,
    cost_source        TEXT,
    pricing_version    TEXT,
    billing_provider   TEXT,
    billing_base_url   TEXT,
    billing_mode       TEXT,
    title              TEXT,
    model              TEXT,
    handoff_state      TEXT,
    handoff_platform   TEXT,
    handoff_error      TEXT,
    cwd                TEXT,
    preview            TEXT,                        -- first user message, shortened; NULL: none yet
    model_config       TEXT,
    system_prompt      TEXT,
    imported_from      TEXT,                        -- the file that an imported session came from; NULL: made here
    FOREIGN KEY (parent_session_id) REFERENCES sessions(id)
);

CREATE TABLE IF NOT EXISTS messages (
    id                    INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id            TEXT NOT NULL REFERENCES sessions(id),
    role                  TEXT NOT NULL,
    uid                   TEXT,                     -- NULL: stored by another program, not yet adopted
    timestamp             REAL NOT NULL,
    active                INTEGER NOT NULL DEFAULT 1,
    observed              INTEGER DEFAULT 0,
    token_count           INTEGER,
    finish_reason         TEXT,
    platform_message_id   TEXT,
    tool_call_id          TEXT,
    tool_name             TEXT,
    tool_calls            TEXT,
    content               TEXT,
    reasoning             TEXT,
    reasoning_content     TEXT,
    reasoning_details     TEXT,
    codex_reasoning_items TEXT,
    codex_message_items   TEXT
);

-- Every change of a session's token and cost counters; the counters are its sums.
CREATE TABLE IF NOT EXISTS usage_events (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id         TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    at                 REAL NOT NULL,
    kind               TEXT NOT NULL,               -- delta, absolute, opening
    model              TEXT,
    billing_provider   TEXT,
    api_call_count     INTEGER NOT NULL DEFAULT 0,
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens   INTEGER NOT NULL DEFAULT 0,
    estimated_cost_usd REAL,
    actual_cost_usd    REAL
);

-- How often a session called each tool.
CREATE TABLE IF NOT EXISTS session_tools (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    tool_name  TEXT NOT NULL,
    calls      INTEGER NOT NULL,
    PRIMARY KEY (session_id, tool_name)
) WITHOUT ROWID;

-- The audit trail of rewinds and restores.
CREATE TABLE IF NOT EXISTS rewinds (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id        TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    action            TEXT NOT NULL,                -- rewind, restore
    target_message_id INTEGER NOT NULL,
    message_count     INTEGER NOT NULL,
    at                REAL NOT NULL
);

-- Imported sessions whose parent has not been imported yet.
CREATE TABLE IF NOT EXISTS pending_links (
    session_id        TEXT PRIMARY KEY REFERENCES sessions(id) ON DELETE CASCADE,
    parent_session_id TEXT NOT NULL,
    child_kind        TEXT
);

CREATE TABLE IF NOT EXISTS compression_locks (
    session_id  TEXT PRIMARY KEY,
    holder      TEXT NOT NULL,
    acquired_at REAL NOT NULL,
    expires_at  REAL NOT NULL
);

-- Sessions that another program created or deleted messages from. The next open counts them again.
CREATE TABLE IF NOT EXISTS stale_sessions (
    session_id TEXT PRIMARY KEY
) WITHOUT ROWID;

-- Messages at or below the `indexed_upto` mark whose index rows are out of date.
CREATE TABLE IF NOT EXISTS stale_index (
    message_id INTEGER PRIMARY KEY
);

-- The oldest and newest time of each indexed batch of messages; ids follow time, except in imported history.
CREATE TABLE IF NOT EXISTS message_times (
    first_id INTEGER PRIMARY KEY,
    last_id  INTEGER NOT NULL,
    oldest   REAL NOT NULL,
    newest   REAL NOT NULL
);

-- The session that each lane uses now, and the flags that decide how it continues.
CREATE TABLE IF NOT EXISTS lanes (
    id                    TEXT PRIMARY KEY NOT NULL, -- short form of session_key
    session_key           TEXT,                      -- NULL: the same as id
    session_id            TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    created_at            REAL NOT NULL,             -- of this session in this lane
    updated_at            REAL NOT NULL,             -- last activity
    platform              TEXT,
    chat_type             TEXT NOT NULL DEFAULT 'dm',
    display_name          TEXT,
    last_prompt_tokens    INTEGER NOT NULL DEFAULT 0,
    suspended             INTEGER NOT NULL DEFAULT 0,
    resume_pending        INTEGER NOT NULL DEFAULT 0,
    resume_reason         TEXT,
    last_resume_marked_at REAL,
    is_fresh_reset        INTEGER NOT NULL DEFAULT 0,
    was_auto_reset        INTEGER NOT NULL DEFAULT 0,
    auto_reset_reason     TEXT,
    reset_had_activity    INTEGER NOT NULL DEFAULT 0,
    expiry_finalized      INTEGER NOT NULL DEFAULT 0,
    expiry_failures       INTEGER NOT NULL DEFAULT 0,
    restart_count         INTEGER NOT NULL DEFAULT 0,
    origin                TEXT,                      -- JSON: where the first message came from
    extra                 TEXT                       -- JSON: other values of the gateway
);

-- What waits in each lane, and which node works on it. Exactly one of three is true: ready_id > 0 (a node may take the
-- lane), lease_until > 0 (a node has it, or it rests until then), or both are 0 (nothing waits).
CREATE TABLE IF NOT EXISTS lane_queues (
    lane_id       TEXT PRIMARY KEY NOT NULL,
    session_key   TEXT,                              -- NULL: the same as lane_id
    waiting_id    INTEGER NOT NULL DEFAULT 0,        -- oldest waiting message; 0: none
    waiting_count INTEGER NOT NULL DEFAULT 0,
    ready_id      INTEGER NOT NULL DEFAULT 0,        -- waiting_id while no node has the lane
    lease_until   REAL NOT NULL DEFAULT 0,
    lease_holder  TEXT,                              -- NULL: no node
    lease_token   INTEGER NOT NULL,                  -- grows with every lease
    turn_id       TEXT                               -- the running turn
);

-- Messages from platforms, in the order in which they were accepted. A message that is done keeps its keys, so that it
-- is recognized when the platform delivers it again, but not its payload.
-- The state can also be held: such a message is open too, but does not count as waiting.
CREATE TABLE IF NOT EXISTS inbox (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    uid          TEXT NOT NULL,
    lane_id      TEXT NOT NULL,
    session_key  TEXT,                               -- NULL: the same as lane_id
    kind         TEXT NOT NULL,                      -- normal, queue, steer, command, internal
    state        TEXT NOT NULL,                      -- accepted, running, done, failed, discarded, parked, dead
    is_open      INTEGER NOT NULL DEFAULT 1,         -- accepted or running
    reason       TEXT,
    attempts     INTEGER NOT NULL DEFAULT 0,         -- turns without progress
    starts       INTEGER NOT NULL DEFAULT 0,         -- all turns
    delivery_key TEXT NOT NULL,                      -- hash of platform, account and the platform's delivery id
    message_key  TEXT,                               -- hash of platform, account, chat and message
    message_ref  TEXT,                               -- short form of the message's id on the platform
    platform     TEXT NOT NULL,
    account      TEXT NOT NULL DEFAULT '',
    chat_id      TEXT,
    message_id   TEXT,                               -- NULL: the same as message_ref
    delivery_id  TEXT,
    turn_id      TEXT,
    accepted_at  REAL NOT NULL,
    started_at   REAL,
    finished_at  REAL,
    dead_at      REAL NOT NULL DEFAULT 0,            -- when it was parked or given up; 0: it was not
    payload      TEXT                                -- JSON; NULL: removed
);

-- The turns of lanes.
CREATE TABLE IF NOT EXISTS turns (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    turn_id       TEXT NOT NULL,
    lane_id       TEXT NOT NULL,
    session_key   TEXT,                              -- NULL: the same as lane_id
    session_id    TEXT,
    node          TEXT NOT NULL,
    token         INTEGER NOT NULL,                  -- of the lease
    state         TEXT NOT NULL,                     -- running, finished, failed, discarded, parked ...
    reason        TEXT,
    progress      INTEGER NOT NULL DEFAULT 0,
    started_at    REAL NOT NULL,
    progressed_at REAL,
    finished_at   REAL,
    note          TEXT                               -- JSON: the progress
);

-- Messages to platforms. A message is stored before it is sent. The due time of a draft is negative.
CREATE TABLE IF NOT EXISTS outbox (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    key_ref         TEXT NOT NULL,                   -- short form of the idempotency key
    idempotency_key TEXT,                            -- NULL: the same as key_ref
    lane_id         TEXT NOT NULL DEFAULT '',
    session_key     TEXT,
    turn_id         TEXT,
    platform        TEXT NOT NULL,
    account         TEXT NOT NULL DEFAULT '',
    kind            TEXT NOT NULL,
    state           TEXT NOT NULL,                   -- draft, pending, sending, sent, unknown, expired, dead
    reason          TEXT,
    attempts        INTEGER NOT NULL DEFAULT 0,
    holder          TEXT,                            -- the node that sends it
    created_at      REAL NOT NULL,
    due_at          REAL NOT NULL DEFAULT 0,         -- when a node may take it; 0: never
    expires_at      REAL,
    finished_at     REAL,
    dead_at         REAL NOT NULL DEFAULT 0,         -- when it was given up; 0: it was not
    receipt         TEXT,                            -- JSON: what the platform returned
    payload         TEXT                             -- JSON; NULL: removed
);

-- Which node polls an account that allows only one poller.
CREATE TABLE IF NOT EXISTS connector_leases (
    id          TEXT PRIMARY KEY NOT NULL,           -- short form of name
    name        TEXT,                                -- NULL: the same as id
    holder      TEXT,                                -- NULL: no node
    token       INTEGER NOT NULL,                    -- grows with every lease
    lease_until REAL NOT NULL DEFAULT 0
);

-- Requests to run a tool, which a person approves or denies. Times are those of the database.
CREATE TABLE IF NOT EXISTS approvals (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL,                       -- what a person types
    lane_id     TEXT NOT NULL,                       -- short form of session_key
    session_key TEXT,                                -- NULL: the same as lane_id
    session_id  TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    owner       TEXT,
    platform    TEXT,
    tool        TEXT NOT NULL,
    arguments   TEXT NOT NULL,                       -- JSON, exactly as the model sent it
    directory   TEXT,
    subject     TEXT NOT NULL,
    summary     TEXT NOT NULL,
    detail      TEXT NOT NULL,
    risk        TEXT NOT NULL,
    digest      TEXT NOT NULL,                       -- hash of session_id, tool, arguments and directory
    open_digest TEXT,                                -- digest of a request that the same request joins; else NULL
    state       TEXT NOT NULL,                       -- pending, approved, denied, expired, used, void
    scope       TEXT,                                -- once, session, always; NULL: not decided
    asked_at    REAL NOT NULL,
    expires_at  REAL NOT NULL,
    decided_at  REAL,                                -- when it was approved, denied or expired
    decided_by  TEXT
);

-- What a scope, such as a user or a chat, has used on a day. Limits are checked against it.
CREATE TABLE IF NOT EXISTS usage_days (
    id       TEXT PRIMARY KEY NOT NULL,              -- the day, a blank, and the short form of scope
    scope    TEXT NOT NULL,
    day      TEXT NOT NULL,                          -- YYYY-MM-DD
    turns    INTEGER NOT NULL DEFAULT 0,
    tokens   INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL NOT NULL DEFAULT 0
);

CREATE INDEX IF NOT EXISTS idx_sessions_source ON sessions(source);
CREATE INDEX IF NOT EXISTS idx_sessions_parent ON sessions(parent_session_id);
CREATE INDEX IF NOT EXISTS idx_sessions_started ON sessions(started_at DESC);

-- A title is unique among the sessions of an owner; the terminal is one owner.
CREATE UNIQUE INDEX IF NOT EXISTS idx_sessions_title_unique ON sessions(title, COALESCE(owner, ''))
    WHERE title IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_sessions_chain ON sessions(chain_root) WHERE chain_root IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_sessions_handoff ON sessions(handoff_state) WHERE handoff_state IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_sessions_source_id ON sessions(source, id);
-- Activity is indexed by its tick, so that a burst of messages changes no index. Within a tick rows are sorted.
CREATE INDEX IF NOT EXISTS idx_sessions_list_started ON sessions(listed, archived, started_at DESC, id DESC);
CREATE INDEX IF NOT EXISTS idx_sessions_list_active ON sessions(listed, archived, active_tick DESC);
CREATE INDEX IF NOT EXISTS idx_sessions_source_started ON sessions(source, listed, archived, started_at DESC, id DESC);
CREATE INDEX IF NOT EXISTS idx_sessions_source_active ON sessions(source, listed, archived, active_tick DESC);
CREATE INDEX IF NOT EXISTS idx_sessions_owner_started ON sessions(owner, listed, archived, started_at DESC, id DESC)
    WHERE owner IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_sessions_owner_active ON sessions(owner, listed, archived, active_tick DESC)
    WHERE owner IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_sessions_continued ON sessions(last_active DESC, started_at DESC, id DESC)
    WHERE chain_active > last_active;
CREATE INDEX IF NOT EXISTS idx_sessions_empty ON sessions(message_count, ended_at) WHERE message_count = 0;

-- In the order of a conversation. Insights count messages by hour and role, and read nothing but this index.
CREATE INDEX IF NOT EXISTS idx_messages_session ON messages(session_id, id, timestamp, role, active);
-- A uid that this store made up begins with a tilde and repeats nothing, so only those of callers are looked up.
CREATE UNIQUE INDEX IF NOT EXISTS idx_messages_uid ON messages(session_id, uid) WHERE uid NOT GLOB '~*';
CREATE INDEX IF NOT EXISTS idx_messages_platform_msg_id ON messages(session_id, platform_message_id)
    WHERE platform_message_id IS NOT NULL;
-- Rows that another program wrote. The index contains nothing else; a trigger would slow down every message.
CREATE INDEX IF NOT EXISTS idx_messages_foreign ON messages(session_id, id) WHERE uid IS NULL;
CREATE INDEX IF NOT EXISTS idx_usage_events_session ON usage_events(session_id, id);
CREATE INDEX IF NOT EXISTS idx_usage_events_at ON usage_events(at);
CREATE INDEX IF NOT EXISTS idx_pending_links_parent ON pending_links(parent_session_id);
CREATE INDEX IF NOT EXISTS idx_rewinds_session ON rewinds(session_id, id);
CREATE INDEX IF NOT EXISTS idx_compression_locks_expires ON compression_locks(expires_at);

CREATE INDEX IF NOT EXISTS idx_message_times_newest ON message_times(newest);
CREATE INDEX IF NOT EXISTS idx_message_times_oldest ON message_times(oldest);

CREATE INDEX IF NOT EXISTS idx_lanes_session ON lanes(session_id);
CREATE INDEX IF NOT EXISTS idx_lanes_activity ON lanes(expiry_finalized, updated_at, id);
CREATE INDEX IF NOT EXISTS idx_lane_queues_ready ON lane_queues(ready_id);
CREATE INDEX IF NOT EXISTS idx_lane_queues_lease ON lane_queues(lease_until);
CREATE UNIQUE INDEX IF NOT EXISTS idx_inbox_delivery ON inbox(delivery_key);
CREATE UNIQUE INDEX IF NOT EXISTS idx_inbox_message ON inbox(message_key);
CREATE INDEX IF NOT EXISTS idx_inbox_lane ON inbox(lane_id, is_open, id);
CREATE INDEX IF NOT EXISTS idx_inbox_ref ON inbox(message_ref);
CREATE INDEX IF NOT EXISTS idx_inbox_dead ON inbox(dead_at, id);
CREATE UNIQUE INDEX IF NOT EXISTS idx_turns_turn ON turns(turn_id);
CREATE INDEX IF NOT EXISTS idx_turns_lane ON turns(lane_id, id);
CREATE UNIQUE INDEX IF NOT EXISTS idx_outbox_key ON outbox(key_ref);
CREATE INDEX IF NOT EXISTS idx_outbox_due ON outbox(due_at, id);
CREATE INDEX IF NOT EXISTS idx_outbox_lane ON outbox(lane_id, due_at, id);
CREATE INDEX IF NOT EXISTS idx_outbox_dead ON outbox(dead_at, id);

CREATE INDEX IF NOT EXISTS idx_lanes_resume ON lanes(id) WHERE resume_pending = 1;
CREATE INDEX IF NOT EXISTS idx_outbox_turn ON outbox(turn_id) WHERE turn_id IS NOT NULL;

CREATE UNIQUE INDEX IF NOT EXISTS idx_approvals_id ON approvals(id);
CREATE UNIQUE INDEX IF NOT EXISTS idx_approvals_open ON approvals(open_digest);
CREATE INDEX IF NOT EXISTS idx_approvals_session ON approvals(session_id);
CREATE INDEX IF NOT EXISTS idx_approvals_lane ON approvals(lane_id, state, number);
CREATE INDEX IF NOT EXISTS idx_approvals_state ON approvals(state, number);
CREATE INDEX IF NOT EXISTS idx_approvals_due ON approvals(state, expires_at);
CREATE INDEX IF NOT EXISTS idx_approvals_decided ON approvals(decided_at);

-- Both indexes hold no second copy of the text, and are filled in batches up to the `indexed_upto` mark. Their text is
-- analyzed already, so the tokenizers only split it at blanks or into trigrams.
CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts USING fts5(
    content, content='', contentless_delete=1, tokenize='ascii'
);
CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts_trigram USING fts5(
    content, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1'
);

-- The triggers mark messages that plain SQL changes or deletes, so that a search never uses their old index rows.
CREATE TRIGGER IF NOT EXISTS messages_fts_update
    AFTER UPDATE OF content, tool_name, tool_calls, role, session_id, timestamp ON messages BEGIN
    INSERT OR IGNORE INTO stale_index(message_id) VALUES (new.id);
END;
CREATE TRIGGER IF NOT EXISTS messages_fts_delete AFTER DELETE ON messages BEGIN
    DELETE FROM messages_fts WHERE rowid = old.id;
    DELETE FROM stale_index WHERE message_id = old.id;
END;
CREATE TRIGGER IF NOT EXISTS messages_uncounted AFTER DELETE ON messages
    WHEN (SELECT message_count FROM sessions WHERE id = old.session_id) > 0 BEGIN
    INSERT OR IGNORE INTO stale_sessions(session_id) VALUES (old.session_id);
END;
CREATE TRIGGER IF NOT EXISTS messages_fts_trigram_delete AFTER DELETE ON messages BEGIN
    DELETE FROM messages_fts_trigram WHERE rowid = old.id;
END;
CREATE TRIGGER IF NOT EXISTS sessions_adopt AFTER INSERT ON sessions WHEN new.last_active IS NULL BEGIN
    UPDATE sessions SET child_kind = '?', last_active = started_at, chain_active = started_at,
        active_tick = CAST(MAX(-4.6e18, MIN(4.6e18, started_at * 100)) AS INTEGER) WHERE id = new.id;
    INSERT OR IGNORE INTO stale_sessions(session_id) VALUES (new.id);
END;
CREATE TRIGGER IF NOT EXISTS sessions_fts_update AFTER UPDATE OF source, owner ON sessions
    WHEN new.source IS NOT old.source OR new.owner IS NOT old.owner BEGIN
    INSERT OR IGNORE INTO stale_index(message_id) SELECT id FROM messages WHERE session_id = new.id;
END;

-- INSERT OR REPLACE runs no delete trigger for the row that it removes, so these triggers notice the new row. It is the
-- only one with an id at or below the indexed mark, which is the newest last_id of message_times.
CREATE TRIGGER IF NOT EXISTS messages_replaced AFTER INSERT ON messages
    WHEN new.id <= (SELECT last_id FROM message_times ORDER BY first_id DESC LIMIT 1) BEGIN
    INSERT OR IGNORE INTO stale_index(message_id) VALUES (new.id);
    INSERT OR IGNORE INTO stale_sessions(session_id) VALUES (new.session_id);
END;
CREATE TRIGGER IF NOT EXISTS sessions_replaced AFTER INSERT ON sessions
    WHEN EXISTS (SELECT 1 FROM messages WHERE session_id = new.id) BEGIN
    INSERT OR IGNORE INTO stale_index(message_id) SELECT id FROM messages WHERE session_id = new.id;
    INSERT OR IGNORE INTO stale_sessions(session_id) VALUES (new.id);
END;
