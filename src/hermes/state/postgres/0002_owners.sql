-- Addition 0002_owners: titles are unique among the sessions of an owner, the terminal (NULL) being one, and an imported
-- session says which file it came from.

ALTER TABLE sessions ADD COLUMN imported_from text COLLATE "C";

DROP INDEX idx_sessions_title_unique;
CREATE UNIQUE INDEX idx_sessions_title_unique ON sessions (title, COALESCE(owner, '')) WHERE title IS NOT NULL;
