-- Create the tables of approvals, and of what each scope has used on a day.

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

CREATE UNIQUE INDEX IF NOT EXISTS idx_approvals_id ON approvals(id);
CREATE UNIQUE INDEX IF NOT EXISTS idx_approvals_open ON approvals(open_digest);
CREATE INDEX IF NOT EXISTS idx_approvals_session ON approvals(session_id);
CREATE INDEX IF NOT EXISTS idx_approvals_lane ON approvals(lane_id, state, number);
CREATE INDEX IF NOT EXISTS idx_approvals_state ON approvals(state, number);
CREATE INDEX IF NOT EXISTS idx_approvals_due ON approvals(state, expires_at);
CREATE INDEX IF NOT EXISTS idx_approvals_decided ON approvals(decided_at);
