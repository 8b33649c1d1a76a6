-- Index the words of our own analyzer, and note the times of each indexed batch of messages.
-- Checksum in the ledger: 9c4b128e

-- The oldest and newest time of each indexed batch of messages; ids follow time, except in imported history.
CREATE TABLE IF NOT EXISTS message_times (
    first_id INTEGER PRIMARY KEY,
    last_id  INTEGER NOT NULL,
    oldest   REAL NOT NULL,
    newest   REAL NOT NULL
);

CREATE INDEX IF NOT EXISTS idx_message_times_newest ON message_times(newest);
CREATE INDEX IF NOT EXISTS idx_message_times_oldest ON message_times(oldest);

DROP TABLE IF EXISTS messages_fts;
DROP TABLE IF EXISTS messages_fts_trigram;

-- Both indexes hold no second copy of the text, and are filled in batches up to the `indexed_upto` mark. Their text is
-- analyzed already, so the tokenizers only split it at blanks or into trigrams.
CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts USING fts5(
    content, content='', contentless_delete=1, tokenize='ascii'
);
CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts_trigram USING fts5(
    content, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1'
);

DROP TRIGGER IF EXISTS messages_fts_update;

-- The triggers mark messages that plain SQL changes or deletes, so that a search never uses their old index rows.
CREATE TRIGGER IF NOT EXISTS messages_fts_update
    AFTER UPDATE OF content, tool_name, tool_calls, role, session_id, timestamp ON messages BEGIN
    INSERT OR IGNORE INTO stale_index(message_id) VALUES (new.id);
END;
CREATE TRIGGER IF NOT EXISTS sessions_fts_update AFTER UPDATE OF source, owner ON sessions
    WHEN new.source IS NOT old.source OR new.owner IS NOT old.owner BEGIN
    INSERT OR IGNORE INTO stale_index(message_id) SELECT id FROM messages WHERE session_id = new.id;
END;
