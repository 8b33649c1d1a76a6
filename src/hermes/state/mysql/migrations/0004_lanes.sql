-- Create the tables of the gateway: lanes, their queues and leases, the inbox, turns, the outbox and connector leases.
--
-- Times of `lanes` come from the clock of the process. All other times here are those of the database: leases must not
-- depend on the clock of a node. A lane is named by the short form of its session key, which is the key itself unless
-- that is long.

-- The session that each lane uses now, and the flags that decide how it continues.
CREATE TABLE IF NOT EXISTS lanes (
    id                    VARCHAR(256) NOT NULL, -- short form of session_key
    session_key           LONGTEXT,              -- NULL: the same as id
    session_id            VARCHAR(700) NOT NULL,
    created_at            DOUBLE NOT NULL,       -- of this session in this lane
    updated_at            DOUBLE NOT NULL,       -- last activity
    platform              LONGTEXT,
    chat_type             LONGTEXT NOT NULL,
    display_name          LONGTEXT,
    last_prompt_tokens    BIGINT NOT NULL DEFAULT 0,
    suspended             BIGINT NOT NULL DEFAULT 0,
    resume_pending        BIGINT NOT NULL DEFAULT 0,
    resume_reason         LONGTEXT,
    last_resume_marked_at DOUBLE,
    is_fresh_reset        BIGINT NOT NULL DEFAULT 0,
    was_auto_reset        BIGINT NOT NULL DEFAULT 0,
    auto_reset_reason     LONGTEXT,
    reset_had_activity    BIGINT NOT NULL DEFAULT 0,
    expiry_finalized      BIGINT NOT NULL DEFAULT 0,
    expiry_failures       BIGINT NOT NULL DEFAULT 0,
    restart_count         BIGINT NOT NULL DEFAULT 0,
    origin                LONGTEXT,              -- JSON: where the first message came from
    extra                 LONGTEXT,              -- JSON: other values of the gateway
    PRIMARY KEY (id),
    KEY idx_lanes_session (session_id),
    KEY idx_lanes_activity (expiry_finalized, updated_at, id),
    FOREIGN KEY fk_lanes_session (session_id) REFERENCES sessions (id) ON DELETE CASCADE
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- What waits in each lane, and which node works on it. Exactly one of three is true: ready_id > 0 (a node may take the
-- lane), lease_until > 0 (a node has it, or it rests until then), or both are 0 (nothing waits).
CREATE TABLE IF NOT EXISTS lane_queues (
    lane_id       VARCHAR(256) NOT NULL,
    session_key   LONGTEXT,                      -- NULL: the same as lane_id
    waiting_id    BIGINT NOT NULL DEFAULT 0,     -- oldest waiting message; 0: none
    waiting_count BIGINT NOT NULL DEFAULT 0,
    ready_id      BIGINT NOT NULL DEFAULT 0,     -- waiting_id while no node has the lane
    lease_until   DOUBLE NOT NULL DEFAULT 0,
    lease_holder  LONGTEXT,                      -- NULL: no node
    lease_token   BIGINT NOT NULL,               -- grows with every lease
    turn_id       VARCHAR(64),                   -- the running turn
    PRIMARY KEY (lane_id),
    KEY idx_lane_queues_ready (ready_id),
    KEY idx_lane_queues_lease (lease_until)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- Messages from platforms, in the order in which they were accepted. A message that is done keeps its keys, so that it
-- is recognized when the platform delivers it again, but not its payload.
-- The state can also be held: such a message is open too, but does not count as waiting.
CREATE TABLE IF NOT EXISTS inbox (
    id           BIGINT NOT NULL AUTO_INCREMENT,
    uid          VARCHAR(64) NOT NULL,
    lane_id      VARCHAR(256) NOT NULL,
    session_key  LONGTEXT,                       -- NULL: the same as lane_id
    kind         VARCHAR(100) NOT NULL,          -- normal, queue, steer, command, internal
    state        VARCHAR(100) NOT NULL,          -- accepted, running, done, failed, discarded, parked, dead
    is_open      BIGINT NOT NULL DEFAULT 1,      -- accepted or running
    reason       LONGTEXT,
    attempts     BIGINT NOT NULL DEFAULT 0,      -- turns without progress
    starts       BIGINT NOT NULL DEFAULT 0,      -- all turns
    delivery_key VARCHAR(64) NOT NULL,           -- hash of platform, account and the platform's delivery id
    message_key  VARCHAR(64),                    -- hash of platform, account, chat and message
    message_ref  VARCHAR(256),                   -- short form of the message's id on the platform
    platform     LONGTEXT NOT NULL,
    account      LONGTEXT NOT NULL,
    chat_id      LONGTEXT,
    message_id   LONGTEXT,                       -- NULL: the same as message_ref
    delivery_id  LONGTEXT,
    turn_id      VARCHAR(64),
    accepted_at  DOUBLE NOT NULL,
    started_at   DOUBLE,
    finished_at  DOUBLE,
    dead_at      DOUBLE NOT NULL DEFAULT 0,      -- when it was parked or given up; 0: it was not
    payload      LONGTEXT,                       -- JSON; NULL: removed
    PRIMARY KEY (id),
    UNIQUE KEY idx_inbox_delivery (delivery_key),
    UNIQUE KEY idx_inbox_message (message_key),
    KEY idx_inbox_lane (lane_id, is_open, id),
    KEY idx_inbox_ref (message_ref),
    KEY idx_inbox_dead (dead_at, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- The turns of lanes.
CREATE TABLE IF NOT EXISTS turns (
    id            BIGINT NOT NULL AUTO_INCREMENT,
    turn_id       VARCHAR(64) NOT NULL,
    lane_id       VARCHAR(256) NOT NULL,
    session_key   LONGTEXT,                      -- NULL: the same as lane_id
    session_id    VARCHAR(700),
    node          LONGTEXT NOT NULL,
    token         BIGINT NOT NULL,               -- of the lease
    state         VARCHAR(100) NOT NULL,         -- running, finished, failed, discarded, parked ...
    reason        LONGTEXT,
    progress      BIGINT NOT NULL DEFAULT 0,
    started_at    DOUBLE NOT NULL,
    progressed_at DOUBLE,
    finished_at   DOUBLE,
    note          LONGTEXT,                      -- JSON: the progress
    PRIMARY KEY (id),
    UNIQUE KEY idx_turns_turn (turn_id),
    KEY idx_turns_lane (lane_id, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- Messages to platforms. A message is stored before it is sent. The due time of a draft is negative.
CREATE TABLE IF NOT EXISTS outbox (
    id              BIGINT NOT NULL AUTO_INCREMENT,
    key_ref         VARCHAR(256) NOT NULL,       -- short form of the idempotency key
    idempotency_key LONGTEXT,                    -- NULL: the same as key_ref
    lane_id         VARCHAR(256) NOT NULL DEFAULT '',
    session_key     LONGTEXT,
    turn_id         VARCHAR(64),
    platform        LONGTEXT NOT NULL,
    account         LONGTEXT NOT NULL,
    kind            VARCHAR(100) NOT NULL,
    state           VARCHAR(100) NOT NULL,       -- draft, pending, sending, sent, unknown, expired, dead
    reason          LONGTEXT,
    attempts        BIGINT NOT NULL DEFAULT 0,
    holder          LONGTEXT,                    -- the node that sends it
    created_at      DOUBLE NOT NULL,
    due_at          DOUBLE NOT NULL DEFAULT 0,   -- when a node may take it; 0: never
    expires_at      DOUBLE,
    finished_at     DOUBLE,
    dead_at         DOUBLE NOT NULL DEFAULT 0,   -- when it was given up; 0: it was not
    receipt         LONGTEXT,                    -- JSON: what the platform returned
    payload         LONGTEXT,                    -- JSON; NULL: removed
    PRIMARY KEY (id),
    UNIQUE KEY idx_outbox_key (key_ref),
    KEY idx_outbox_due (due_at, id),
    KEY idx_outbox_lane (lane_id, due_at, id),
    KEY idx_outbox_dead (dead_at, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- Which node polls an account that allows only one poller.
CREATE TABLE IF NOT EXISTS connector_leases (
    id          VARCHAR(256) NOT NULL,           -- short form of name
    name        LONGTEXT,                        -- NULL: the same as id
    holder      LONGTEXT,                        -- NULL: no node
    token       BIGINT NOT NULL,                 -- grows with every lease
    lease_until DOUBLE NOT NULL DEFAULT 0,
    PRIMARY KEY (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;
