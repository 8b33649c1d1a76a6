-- Create the tables of approvals, and of what each scope has used on a day; count the fenced writes of a lane.

-- Requests to run a tool, which a person approves or denies. Times are those of the database.
CREATE TABLE IF NOT EXISTS approvals (
    number      BIGINT NOT NULL AUTO_INCREMENT,
    id          VARCHAR(64) NOT NULL,            -- what a person types
    lane_id     VARCHAR(256) NOT NULL,           -- short form of session_key
    session_key LONGTEXT,                        -- NULL: the same as lane_id
    session_id  VARCHAR(700) NOT NULL,
    owner       LONGTEXT,
    platform    LONGTEXT,
    tool        LONGTEXT NOT NULL,
    arguments   LONGTEXT NOT NULL,               -- JSON, exactly as the model sent it
    directory   LONGTEXT,
    subject     LONGTEXT NOT NULL,
    summary     LONGTEXT NOT NULL,
    detail      LONGTEXT NOT NULL,
    risk        LONGTEXT NOT NULL,
    digest      VARCHAR(64) NOT NULL,            -- hash of session_id, tool, arguments and directory
    open_digest VARCHAR(64),                     -- digest of a request that the same request joins; else NULL
    state       VARCHAR(100) NOT NULL,           -- pending, approved, denied, expired, used, void
    scope       VARCHAR(100),                    -- once, session, always; NULL: not decided
    asked_at    DOUBLE NOT NULL,
    expires_at  DOUBLE NOT NULL,
    decided_at  DOUBLE,                          -- when it was approved, denied or expired
    decided_by  LONGTEXT,
    PRIMARY KEY (number),
    UNIQUE KEY idx_approvals_id (id),
    UNIQUE KEY idx_approvals_open (open_digest),
    KEY idx_approvals_session (session_id),
    KEY idx_approvals_lane (lane_id, state, number),
    KEY idx_approvals_state (state, number),
    KEY idx_approvals_due (state, expires_at),
    KEY idx_approvals_decided (decided_at),
    FOREIGN KEY fk_approvals_session (session_id) REFERENCES sessions (id) ON DELETE CASCADE
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- What a scope, such as a user or a chat, has used on a day. Limits are checked against it.
CREATE TABLE IF NOT EXISTS usage_days (
    id       VARCHAR(272) NOT NULL,              -- the day, a blank, and the short form of scope
    scope    LONGTEXT NOT NULL,
    day      VARCHAR(10) NOT NULL,               -- YYYY-MM-DD
    turns    BIGINT NOT NULL DEFAULT 0,
    tokens   BIGINT NOT NULL DEFAULT 0,
    cost_usd DOUBLE NOT NULL DEFAULT 0,
    PRIMARY KEY (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- In a Galera cluster a lock holds on one node only. A fenced write changes this column, so that it fails if another
-- node takes the lane before it is committed. MySQL has no ADD COLUMN IF NOT EXISTS; a repetition does nothing.
SET @hermes_fenced = IF(
    EXISTS (SELECT 1 FROM information_schema.columns
            WHERE table_schema = DATABASE() AND table_name = 'lane_queues' AND column_name = 'fenced_writes'),
    'DO 0',
    'ALTER TABLE lane_queues ADD COLUMN fenced_writes BIGINT NOT NULL DEFAULT 0');

PREPARE hermes_fenced FROM @hermes_fenced;

EXECUTE hermes_fenced;

DEALLOCATE PREPARE hermes_fenced;
