-- Empty the search index, so that it is filled again with the stems of words, units and ids as words too.

DELETE FROM word_places;

DELETE FROM message_words;

DELETE FROM known_words;

DELETE FROM deleted_messages;

DELETE FROM message_times;

INSERT IGNORE INTO stale_index (message_id) SELECT id FROM messages;

UPDATE state_meta SET value = '0' WHERE `key` = 'indexed_upto';

UPDATE state_meta SET value = CAST(value AS SIGNED) + 1 WHERE `key` IN ('index_epoch', 'words_epoch')
    AND EXISTS (SELECT 1 FROM messages);
