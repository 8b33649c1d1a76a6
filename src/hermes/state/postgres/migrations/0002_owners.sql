-- Make titles unique per owner (the terminal, NULL, is one owner) and record the file of an imported session.
-- Checksum in the ledger: 4fc4759b

ALTER TABLE sessions ADD COLUMN imported_from text COLLATE "C";

DROP INDEX idx_sessions_title_unique;
CREATE UNIQUE INDEX idx_sessions_title_unique ON sessions (title, COALESCE(owner, '')) WHERE title IS NOT NULL;
