-- A failure that counts as a success, since its plan allows it.
ALTER TABLE job ADD COLUMN excused BIGINT NOT NULL DEFAULT 0;
