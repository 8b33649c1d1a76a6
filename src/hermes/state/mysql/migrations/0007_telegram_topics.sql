-- Create the tables of Telegram topics: which private chats use them, and which session each topic continues.

CREATE TABLE IF NOT EXISTS telegram_dm_topic_mode (
    chat_id                       VARCHAR(200) NOT NULL,
    user_id                       VARCHAR(200) NOT NULL,
    enabled                       BIGINT NOT NULL DEFAULT 1,
    activated_at                  DOUBLE NOT NULL,
    updated_at                    DOUBLE NOT NULL,
    has_topics_enabled            BIGINT,        -- of the bot; NULL: not known
    allows_users_to_create_topics BIGINT,        -- of the bot; NULL: not known
    capability_checked_at         DOUBLE,
    intro_message_id              LONGTEXT,
    pinned_message_id             LONGTEXT,
    PRIMARY KEY (chat_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;

CREATE TABLE IF NOT EXISTS telegram_dm_topic_bindings (
    chat_id      VARCHAR(200) NOT NULL,
    thread_id    VARCHAR(200) NOT NULL,
    user_id      VARCHAR(200) NOT NULL,
    session_key  LONGTEXT NOT NULL,
    session_id   VARCHAR(700) NOT NULL,
    managed_mode VARCHAR(200) NOT NULL DEFAULT 'auto',
    linked_at    DOUBLE NOT NULL,
    updated_at   DOUBLE NOT NULL,
    PRIMARY KEY (chat_id, thread_id),
    UNIQUE KEY idx_telegram_dm_topic_bindings_session (session_id),
    KEY idx_telegram_dm_topic_bindings_user (user_id, chat_id),
    FOREIGN KEY fk_telegram_dm_topic_bindings_session (session_id) REFERENCES sessions (id) ON DELETE CASCADE
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = $collation;
