-- A broadcast is one summary row and one delivery per recipient, tied by origin_message_id (SPEC 2.3, 3).

ALTER TABLE messages ADD COLUMN type TEXT NOT NULL DEFAULT 'unicast';

-- No foreign key: the origin is only a grouping mark.
ALTER TABLE messages ADD COLUMN origin_message_id INTEGER;

-- Whose inbox or history the row belongs to: the sender for a summary, else the recipient.
ALTER TABLE messages ADD COLUMN owner_member_id INTEGER
    GENERATED ALWAYS AS (CASE type WHEN 'broadcast_summary' THEN from_member_id ELSE to_member_id END) VIRTUAL
    REFERENCES members(member_id) ON DELETE RESTRICT;

CREATE INDEX idx_messages_owner_member_status_ts ON messages(owner_member_id, status_timestamp);
