-- Version 6: reasoning.
ALTER TABLE messages ADD COLUMN reasoning TEXT;
ALTER TABLE messages ADD COLUMN reasoning_details TEXT;
ALTER TABLE messages ADD COLUMN codex_reasoning_items TEXT;
UPDATE schema_version SET version = 6;
