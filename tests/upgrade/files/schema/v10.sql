-- Version 10: a trigram index beside the words, of the content only.
CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(
    content, content=messages, content_rowid=id, tokenize='trigram'
);

CREATE TRIGGER messages_fts_trigram_insert AFTER INSERT ON messages BEGIN
    INSERT INTO messages_fts_trigram(rowid, content) VALUES (new.id, new.content);
END;

CREATE TRIGGER messages_fts_trigram_delete AFTER DELETE ON messages BEGIN
    INSERT INTO messages_fts_trigram(messages_fts_trigram, rowid, content) VALUES ('delete', old.id, old.content);
END;

CREATE TRIGGER messages_fts_trigram_update AFTER UPDATE ON messages BEGIN
    INSERT INTO messages_fts_trigram(messages_fts_trigram, rowid, content) VALUES ('delete', old.id, old.content);
    INSERT INTO messages_fts_trigram(rowid, content) VALUES (new.id, new.content);
END;

INSERT INTO messages_fts_trigram(rowid, content) SELECT id, content FROM messages;

UPDATE schema_version SET version = 10;
