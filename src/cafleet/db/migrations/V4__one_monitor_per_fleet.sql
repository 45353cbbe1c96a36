-- The index is the last word on "at most one active monitor per fleet" (SPEC 3).

CREATE UNIQUE INDEX idx_members_one_active_monitor_per_fleet
    ON members(fleet_id)
    WHERE status = 'active' AND json_extract(member_card_json, '$.cafleet.kind') = 'monitor';
