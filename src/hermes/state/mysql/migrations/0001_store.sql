-- Create the store: sessions, messages, usage, the full-text index and the triggers that keep it in step.
-- Checksum in the ledger: bcb1ffb9
--
-- Every statement can be repeated, and ends with a semicolon and an empty line.
--
-- Text compares by code point, and trailing blanks count. A column in a key has at most 700 characters, other text has
-- no limit; where a longer text must be unique, the key holds its hash. Flags are whole numbers, so that rows look as
-- they do in the other stores.

CREATE TABLE IF NOT EXISTS schema_version (
    version BIGINT NOT NULL,
    PRIMARY KEY (version)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

CREATE TABLE IF NOT EXISTS state_meta (
    `key` VARCHAR(700) NOT NULL,
    value LONGTEXT,
    PRIMARY KEY (`key`)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- The migrations that were applied, by name. A database with this table is a store of Hermes.
CREATE TABLE IF NOT EXISTS hermes_ledger (
    name       VARCHAR(700) NOT NULL,
    checksum   VARCHAR(100) NOT NULL,
    applied_at DOUBLE NOT NULL,
    PRIMARY KEY (name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- Every index ends with the primary key: read backwards it returns the newest first, and equal ones by id. A list
-- reads an index only if that has every column of its order, because these servers sort all rows or none.
CREATE TABLE IF NOT EXISTS sessions (
    id                 VARCHAR(700) NOT NULL,
    source             VARCHAR(700) NOT NULL,
    user_id            LONGTEXT,
    owner              VARCHAR(700),               -- who may see it; NULL: the terminal
    parent_session_id  VARCHAR(700),
    child_kind         VARCHAR(100),               -- compression, branch, delegate, reset, import
    chain_root         VARCHAR(700),               -- first session of its compression chain; NULL: itself
    listed             BIGINT NOT NULL DEFAULT 1,  -- stands in lists by itself
    archived           BIGINT NOT NULL DEFAULT 0,
    pinned             BIGINT NOT NULL DEFAULT 0,
    started_at         DOUBLE NOT NULL,
    last_active        DOUBLE NOT NULL,            -- newest message, else the start
    chain_active       DOUBLE NOT NULL,            -- the same over the compression chain that begins here
    active_tick        BIGINT NOT NULL,            -- chain_active in hundredths of a second
    ended_at           DOUBLE,
    end_reason         LONGTEXT,
    message_count      BIGINT NOT NULL DEFAULT 0,
    tool_call_count    BIGINT NOT NULL DEFAULT 0,
    rewind_count       BIGINT NOT NULL DEFAULT 0,
    api_call_count     BIGINT DEFAULT 0,
    input_tokens       BIGINT DEFAULT 0,
    output_tokens      BIGINT DEFAULT 0,
    cache_read_tokens  BIGINT DEFAULT 0,
    cache_write_tokens BIGINT DEFAULT 0,
    reasoning_tokens   BIGINT DEFAULT 0,
    estimated_cost_usd DOUBLE,
    actual_cost_usd    DOUBLE,
    cost_status        LONGTEXT,
    cost_source        LONGTEXT,
    pricing_version    LONGTEXT,
    billing_provider   LONGTEXT,
    billing_base_url   LONGTEXT,
    billing_mode       LONGTEXT,
    title              VARCHAR(700),
    model              LONGTEXT,
    handoff_state      VARCHAR(700),
    handoff_platform   LONGTEXT,
    handoff_error      LONGTEXT,
    cwd                LONGTEXT,
    preview            LONGTEXT,                   -- first user message, shortened; NULL: none yet
    model_config       LONGTEXT,
    system_prompt      LONGTEXT,
    PRIMARY KEY (id),
    UNIQUE KEY idx_sessions_title_unique (title),
    KEY idx_sessions_parent (parent_session_id),
    KEY idx_sessions_chain (chain_root),
    KEY idx_sessions_handoff (handoff_state),
    KEY idx_sessions_list_started (listed, archived, started_at),
    KEY idx_sessions_list_active (listed, archived, active_tick, chain_active, started_at),
    KEY idx_sessions_source_started (source, listed, archived, started_at),
    KEY idx_sessions_source_active (source, listed, archived, active_tick),
    KEY idx_sessions_owner_started (owner, listed, archived, started_at),
    KEY idx_sessions_owner_active (owner, listed, archived, active_tick),
    FOREIGN KEY fk_sessions_parent (parent_session_id) REFERENCES sessions (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- An append locks its session first: the ids of a session's messages are in the order of their commits.
CREATE TABLE IF NOT EXISTS messages (
    id                    BIGINT NOT NULL AUTO_INCREMENT,
    session_id            VARCHAR(700) NOT NULL,
    role                  LONGTEXT NOT NULL,
    uid                   LONGTEXT,  -- NULL: stored by another program
    timestamp             DOUBLE NOT NULL,
    active                BIGINT NOT NULL DEFAULT 1,
    observed              BIGINT DEFAULT 0,
    token_count           BIGINT,
    finish_reason         LONGTEXT,
    platform_message_id   LONGTEXT,
    tool_call_id          LONGTEXT,
    tool_name             LONGTEXT,
    tool_calls            LONGTEXT,
    content               LONGTEXT,
    reasoning             LONGTEXT,
    reasoning_content     LONGTEXT,
    reasoning_details     LONGTEXT,
    codex_reasoning_items LONGTEXT,
    codex_message_items   LONGTEXT,
    -- A uid that this store made up begins with a tilde and repeats nothing, so only those of callers are looked up.
    uid_key BINARY(32) GENERATED ALWAYS AS (
        CASE WHEN uid LIKE '~%' THEN NULL ELSE UNHEX(SHA2(CONCAT(session_id, CHAR(0), uid), 256)) END) STORED INVISIBLE,
    PRIMARY KEY (id),
    UNIQUE KEY idx_messages_uid (uid_key),
    KEY idx_messages_order (session_id, id),
    FOREIGN KEY fk_messages_session (session_id) REFERENCES sessions (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- Every change of a session's token and cost counters; the counters are its sums.
CREATE TABLE IF NOT EXISTS usage_events (
    id                 BIGINT NOT NULL AUTO_INCREMENT,
    session_id         VARCHAR(700) NOT NULL,
    at                 DOUBLE NOT NULL,
    kind               VARCHAR(100) NOT NULL,  -- delta, absolute, opening
    model              LONGTEXT,
    billing_provider   LONGTEXT,
    api_call_count     BIGINT NOT NULL DEFAULT 0,
    input_tokens       BIGINT NOT NULL DEFAULT 0,
    output_tokens      BIGINT NOT NULL DEFAULT 0,
    cache_read_tokens  BIGINT NOT NULL DEFAULT 0,
    cache_write_tokens BIGINT NOT NULL DEFAULT 0,
    reasoning_tokens   BIGINT NOT NULL DEFAULT 0,
    estimated_cost_usd DOUBLE,
    actual_cost_usd    DOUBLE,
    PRIMARY KEY (id),
    KEY idx_usage_events_session (session_id, id),
    KEY idx_usage_events_at (at),
    FOREIGN KEY fk_usage_events_session (session_id) REFERENCES sessions (id) ON DELETE CASCADE
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- How often a session called each tool.
CREATE TABLE IF NOT EXISTS session_tools (
    id         BIGINT NOT NULL AUTO_INCREMENT,
    session_id VARCHAR(700) NOT NULL,
    tool_name  LONGTEXT NOT NULL,
    calls      BIGINT NOT NULL,
    tool_key   BINARY(32) GENERATED ALWAYS AS (UNHEX(SHA2(tool_name, 256))) STORED INVISIBLE,
    PRIMARY KEY (id),
    UNIQUE KEY idx_session_tools (session_id, tool_key),
    FOREIGN KEY fk_session_tools_session (session_id) REFERENCES sessions (id) ON DELETE CASCADE
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- The audit trail of rewinds and restores.
CREATE TABLE IF NOT EXISTS rewinds (
    id                BIGINT NOT NULL AUTO_INCREMENT,
    session_id        VARCHAR(700) NOT NULL,
    action            VARCHAR(100) NOT NULL,  -- rewind, restore
    target_message_id BIGINT NOT NULL,
    message_count     BIGINT NOT NULL,
    at                DOUBLE NOT NULL,
    PRIMARY KEY (id),
    KEY idx_rewinds_session (session_id, id),
    FOREIGN KEY fk_rewinds_session (session_id) REFERENCES sessions (id) ON DELETE CASCADE
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- Imported sessions whose parent has not been imported yet.
CREATE TABLE IF NOT EXISTS pending_links (
    session_id        VARCHAR(700) NOT NULL,
    parent_session_id VARCHAR(700) NOT NULL,
    child_kind        VARCHAR(100),
    PRIMARY KEY (session_id),
    KEY idx_pending_links_parent (parent_session_id),
    FOREIGN KEY fk_pending_links_session (session_id) REFERENCES sessions (id) ON DELETE CASCADE
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

CREATE TABLE IF NOT EXISTS compression_locks (
    session_id  VARCHAR(700) NOT NULL,
    holder      LONGTEXT NOT NULL,
    acquired_at DOUBLE NOT NULL,
    expires_at  DOUBLE NOT NULL,
    PRIMARY KEY (session_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- The full-text index, filled in batches up to the `indexed_upto` mark. Its words are those of our analyzer, cut after
-- 500 characters, and marks for the source, owner and session of a message.
CREATE TABLE IF NOT EXISTS known_words (
    id   INT UNSIGNED NOT NULL AUTO_INCREMENT,
    word VARCHAR(500) NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY idx_known_words (word)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- Which messages have a word: for each span of 1024 ids, the places in it, two bytes each.
CREATE TABLE IF NOT EXISTS word_places (
    word_id INT UNSIGNED NOT NULL,
    span    BIGINT NOT NULL,
    places  VARBINARY(4096) NOT NULL,
    PRIMARY KEY (word_id, span)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- The words of a message in their order, then its marks: their ids, four bytes each.
CREATE TABLE IF NOT EXISTS message_words (
    message_id BIGINT NOT NULL,
    words      LONGBLOB NOT NULL,
    PRIMARY KEY (message_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- Messages that are not indexed yet, or whose index rows are out of date.
CREATE TABLE IF NOT EXISTS stale_index (
    message_id BIGINT NOT NULL,
    PRIMARY KEY (message_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- Deleted messages, until their words are removed from the index.
CREATE TABLE IF NOT EXISTS deleted_messages (
    message_id BIGINT NOT NULL,
    PRIMARY KEY (message_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- The oldest and newest time of each indexed batch of messages; ids follow time, except in imported history.
CREATE TABLE IF NOT EXISTS message_times (
    first_id BIGINT NOT NULL,
    last_id  BIGINT NOT NULL,
    oldest   DOUBLE NOT NULL,
    newest   DOUBLE NOT NULL,
    PRIMARY KEY (first_id),
    KEY idx_message_times_newest (newest, first_id),
    KEY idx_message_times_oldest (oldest, first_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

-- The triggers note every message that is added or changed, also by plain SQL. A search reads those messages themselves
-- until they are indexed.
DROP TRIGGER IF EXISTS message_added;

CREATE TRIGGER message_added AFTER INSERT ON messages FOR EACH ROW
    INSERT IGNORE INTO stale_index (message_id) VALUES (NEW.id);

DROP TRIGGER IF EXISTS message_changed;

CREATE TRIGGER message_changed AFTER UPDATE ON messages FOR EACH ROW
    IF NOT (NEW.content <=> OLD.content AND NEW.tool_name <=> OLD.tool_name AND NEW.tool_calls <=> OLD.tool_calls
            AND NEW.role <=> OLD.role AND NEW.session_id <=> OLD.session_id AND NEW.timestamp <=> OLD.timestamp) THEN
        INSERT IGNORE INTO stale_index (message_id) VALUES (NEW.id);
    END IF;

DROP TRIGGER IF EXISTS message_deleted;

CREATE TRIGGER message_deleted AFTER DELETE ON messages FOR EACH ROW
    INSERT IGNORE INTO deleted_messages (message_id) VALUES (OLD.id);

DROP TRIGGER IF EXISTS session_changed;

CREATE TRIGGER session_changed AFTER UPDATE ON sessions FOR EACH ROW
    IF NOT (NEW.source <=> OLD.source AND NEW.owner <=> OLD.owner) THEN
        INSERT IGNORE INTO stale_index (message_id) SELECT id FROM messages WHERE session_id = NEW.id;
    END IF;
