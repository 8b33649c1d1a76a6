-- Create the tables of the gateway: lanes, their queues and leases, the inbox, turns, the outbox and connector leases.
--
-- Times of `lanes` come from the clock of the process. All other times here are those of the database: leases must not
-- depend on the clock of a node. A lane is named by the short form of its session key, which is the key itself unless
-- that is long.

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
