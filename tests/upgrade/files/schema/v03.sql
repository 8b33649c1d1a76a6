-- Version 3: titles.
ALTER TABLE sessions ADD COLUMN title TEXT;
UPDATE schema_version SET version = 3;
