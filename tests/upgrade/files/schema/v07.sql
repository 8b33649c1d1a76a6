-- Version 7: reasoning as the provider sent it.
ALTER TABLE messages ADD COLUMN reasoning_content TEXT;
UPDATE schema_version SET version = 7;
