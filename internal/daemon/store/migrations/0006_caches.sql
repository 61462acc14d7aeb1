-- Folders that jobs have left for later ones, by a key that never changes what it stands for. Those of one class of trust are not
-- there for another.
CREATE TABLE cache (
    project    TEXT   NOT NULL,
    trust      BIGINT NOT NULL,
    key        TEXT   NOT NULL,
    seq        BIGINT NOT NULL,
    trees      TEXT   NOT NULL,
    bytes      BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at    BIGINT NOT NULL,
    PRIMARY KEY (project, trust, key)
);
CREATE INDEX cache_seq ON cache (project, trust, seq);
