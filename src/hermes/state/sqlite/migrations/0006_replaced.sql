-- Notice messages and sessions that another program replaces, so that they are indexed and counted again.
-- Checksum in the ledger: 935e72c1

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
