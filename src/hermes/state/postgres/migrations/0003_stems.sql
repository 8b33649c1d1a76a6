-- Empty the search index, so that it is filled again with the stems of words, units and ids as words too.

TRUNCATE message_words, known_words, forgotten_words, stale_index, message_times;

UPDATE state_meta SET value = '0' WHERE key = 'indexed_upto';

UPDATE state_meta SET value = CAST(CAST(value AS bigint) + 1 AS text) WHERE key IN ('index_epoch', 'words_epoch') AND EXISTS (SELECT 1 FROM messages);
