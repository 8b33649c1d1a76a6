-- Make titles unique per owner (the terminal, NULL, is one owner) and record the file of an imported session.
-- Checksum in the ledger: 35a2b383
--
-- One statement changes the table, so that it is changed completely or not at all. MySQL has no ADD COLUMN IF NOT
-- EXISTS; a repetition finds the column and does nothing. An owner can be as long as a title, and a key has space for
-- only one of them: it holds the hash of the owner.

SET @hermes_owners = IF(
    EXISTS (SELECT 1 FROM information_schema.columns
            WHERE table_schema = DATABASE() AND table_name = 'sessions' AND column_name = 'owner_key'),
    'DO 0',
    'ALTER TABLE sessions
         ADD COLUMN imported_from LONGTEXT,
         ADD COLUMN owner_key BINARY(32) GENERATED ALWAYS AS (UNHEX(SHA2(COALESCE(owner, ''''), 256))) STORED INVISIBLE,
         DROP INDEX idx_sessions_title_unique,
         ADD UNIQUE KEY idx_sessions_title_unique (title, owner_key)');

PREPARE hermes_owners FROM @hermes_owners;

EXECUTE hermes_owners;

DEALLOCATE PREPARE hermes_owners;
