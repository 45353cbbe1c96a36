-- Which multiplexer server a pane belongs to (SPEC 5.2), the sender's own key of a send (SPEC 3),
-- and the indexes that keep every command as fast with a million messages as with a thousand (SPEC 13).

ALTER TABLE member_placements ADD COLUMN mux_server TEXT;

ALTER TABLE messages ADD COLUMN client_key TEXT;

CREATE UNIQUE INDEX idx_messages_client_key
    ON messages(from_member_id, to_member_id, client_key)
    WHERE client_key IS NOT NULL;

-- Inbox, unread count, and the open half of the timeline:
-- owner_member_id = ? AND status_state = 'input_required' ORDER BY status_timestamp DESC, message_id DESC
CREATE INDEX idx_messages_inbox
    ON messages(owner_member_id, status_timestamp)
    WHERE status_state = 'input_required';

-- last_ack, and the closed half of the timeline: together with the inbox every delivery, so that an
-- unknown state is noticed and not passed over:
-- owner_member_id = ? AND type = 'unicast' AND status_state <> 'input_required' ORDER BY status_timestamp DESC
CREATE INDEX idx_messages_closed
    ON messages(owner_member_id, status_timestamp)
    WHERE type = 'unicast' AND status_state <> 'input_required';

-- Pending notifications, oldest first:
-- owner_member_id = ? AND status_state = 'input_required' AND notified_at IS NULL ORDER BY created_at, message_id
CREATE INDEX idx_messages_unnotified
    ON messages(owner_member_id, created_at)
    WHERE status_state = 'input_required' AND notified_at IS NULL;

-- last_recv: max(created_at) WHERE owner_member_id = ? AND type = 'unicast'
CREATE INDEX idx_messages_received
    ON messages(owner_member_id, created_at)
    WHERE type = 'unicast';

-- last_sent: max(created_at) WHERE from_member_id = ?
CREATE INDEX idx_messages_sent ON messages(from_member_id, created_at);
