"""Lanes: which session a chat uses, which messages wait in it, which node works on it, and what is sent back.

A message is stored in the inbox before the platform hears that it was received (`queue/inbox.py`). A node takes the
lane with the oldest waiting message under a lease (`queue/leases.py`) and works on its messages in a turn
(`queue/turns.py`). The end of a turn, the state of its messages and the replies (`delivery/outbox.py`) are one
transaction. Messages can be held: they stay in their lane, but do not wait (`queue/holding.py`).

Every transaction about the messages of a lane locks its row of `lane_queues` first (`queue/queue_row.py`), so such
transactions of one lane run one after the other. A lease has a token that grows with every lease. Every write of a turn
compares it after the lock, so a node that has lost its lease changes nothing.
"""
