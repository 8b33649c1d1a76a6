-- Extend the index of messages by role and active, so that insights count messages without reading them.
-- Checksum in the ledger: 2cdd8e29

DROP INDEX IF EXISTS idx_messages_session;

-- Insights count messages by hour and role, and read nothing but this index.
CREATE INDEX IF NOT EXISTS idx_messages_session ON messages(session_id, timestamp, role, active);
