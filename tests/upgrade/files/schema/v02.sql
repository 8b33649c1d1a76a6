-- Version 2: why a message ended.
ALTER TABLE messages ADD COLUMN finish_reason TEXT;
UPDATE schema_version SET version = 2;
