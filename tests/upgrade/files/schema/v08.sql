-- Version 8: calls of the model's interface.
ALTER TABLE sessions ADD COLUMN api_call_count INTEGER DEFAULT 0;
UPDATE schema_version SET version = 8;
