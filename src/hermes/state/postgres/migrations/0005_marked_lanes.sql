-- Index the lanes that continue after a restart, and the messages to platforms by their turn.

CREATE INDEX idx_lanes_resume ON lanes (id) WHERE resume_pending = 1;
CREATE INDEX idx_outbox_turn ON outbox (turn_id) WHERE turn_id IS NOT NULL;
