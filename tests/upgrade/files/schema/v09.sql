-- Version 9: Codex message items. The key/value table is placed here so that older files lack it.
ALTER TABLE messages ADD COLUMN codex_message_items TEXT;
CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT);
UPDATE schema_version SET version = 9;
