"""The open database file of a process: one writer, several readers.

The way of an append on SQLite, from the call to the disk. "File lock" is the lock between processes
(`files/writer_lock.py`); "SQLite lock" is the one that BEGIN IMMEDIATE takes.

 1. `SessionDB.append_message` (`messages/appending.py`) checks and encodes the fields (`messages/drafts.py`,
    `rows.py`).
 2. `Messages._store` calls `engine.write(work)`. If the file is damaged or full, the messages go to the spool instead.
 3. `SqliteEngine.write` (`sqlite/engine.py`) adds the time limit of this handle.
 4. `SharedFile.write` (`shared.py`) opens the file if needed, and again after a fork or when it was replaced.
 5. `OpenFile.write` (`open_file.py`) refuses a file that is known to be damaged, and restarts a damaged search index.
 6. `Writer.write` (`writer.py`) queues a `WriteRequest`. If no thread leads, this one becomes the leader; otherwise it
    waits until its request is done, or until it is made the leader.
 7. `Writer._lead` takes the file lock (`WriterLock.try_acquire`). If another process has it, the background thread
    waits for it instead. [file lock from here to 15]
 8. `Writer._try_group` begins the transaction (`WritingTransaction.begin`). [SQLite lock from here to 13]
 9. It calls back `OpenFile._require_no_swap`: the file must still be the one at its path.
10. It takes up to `GROUP_LIMIT` requests from the queue: the group.
11. `WritingTransaction.run` calls the work of each request, in a savepoint if there are several.
12. The work is `add_messages` (`messages/appending.py`): it updates the session's counters and inserts the rows, most
    of them through `View.add_plain` (`connection.py`, `message_rows.py`).
13. `WritingTransaction.commit`: COMMIT writes the log and calls fsync. The messages are durable now.
14. Every caller of the group is woken and returns its result.
15. The leader calls back `OpenFile._after_commit`: the `Indexer` notes the messages, and the log moves into the
    database every `CHECKPOINT_EVERY_N_WRITES` commits. Then the leader releases the file lock.
16. `Writer._hand_over` makes the next waiting caller the leader. Back in `_store`, spooled messages are stored.
17. In the next pause the background thread of the `Indexer` (`indexer.py`) takes both locks for a slice at a time
    (`Writer.run_when_idle`), and fills the search index. It ends a slice when a caller or another process waits.

Within the process, `Writer._mutex` guards the queue and the leader; it is never held while SQL runs. A reader takes
none of these locks: `Readers.snapshot` gives it its own connection and a read transaction.
"""
