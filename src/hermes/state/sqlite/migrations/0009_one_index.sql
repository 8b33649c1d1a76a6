-- Replace both indexes of the messages of a session by one, because each costs every append a page of the log.

DROP INDEX IF EXISTS idx_messages_order;
DROP INDEX IF EXISTS idx_messages_session;

-- In the order of a conversation. Insights count messages by hour and role, and read nothing but this index.
CREATE INDEX IF NOT EXISTS idx_messages_session ON messages(session_id, id, timestamp, role, active);
