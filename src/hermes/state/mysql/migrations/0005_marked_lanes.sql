-- Index the lanes that continue after a restart, and the messages to platforms by their turn.
--
-- One statement changes each table. MySQL has no ADD KEY IF NOT EXISTS; a repetition finds the key and does nothing.

SET @hermes_key = IF(
    EXISTS (SELECT 1 FROM information_schema.statistics
            WHERE table_schema = DATABASE() AND table_name = 'lanes' AND index_name = 'idx_lanes_resume'),
    'DO 0',
    'ALTER TABLE lanes ADD KEY idx_lanes_resume (resume_pending, id)');

PREPARE hermes_key FROM @hermes_key;

EXECUTE hermes_key;

DEALLOCATE PREPARE hermes_key;

SET @hermes_key = IF(
    EXISTS (SELECT 1 FROM information_schema.statistics
            WHERE table_schema = DATABASE() AND table_name = 'outbox' AND index_name = 'idx_outbox_turn'),
    'DO 0',
    'ALTER TABLE outbox ADD KEY idx_outbox_turn (turn_id)');

PREPARE hermes_key FROM @hermes_key;

EXECUTE hermes_key;

DEALLOCATE PREPARE hermes_key;
