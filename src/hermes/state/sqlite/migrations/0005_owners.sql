-- Make titles unique per owner (the terminal, NULL, is one owner) and record the file of an imported session.
-- Checksum in the ledger: d60c8ecc

ALTER TABLE sessions ADD COLUMN
    imported_from      TEXT;                        -- the file that an imported session came from; NULL: made here

DROP INDEX IF EXISTS idx_sessions_title_unique;

-- A title is unique among the sessions of an owner; the terminal is one owner.
CREATE UNIQUE INDEX IF NOT EXISTS idx_sessions_title_unique ON sessions(title, COALESCE(owner, ''))
    WHERE title IS NOT NULL;
