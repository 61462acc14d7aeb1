-- Which project holds which object of the content store. touched_at is exact to some hours: it says for how long nobody has
-- asked for the object.
CREATE TABLE object (
    project    TEXT   NOT NULL,
    digest     BLOB   NOT NULL,
    bytes      BIGINT NOT NULL,
    added_at   BIGINT NOT NULL,
    touched_at BIGINT NOT NULL,
    PRIMARY KEY (project, digest, bytes)
);
CREATE INDEX object_digest ON object (digest);
CREATE INDEX upload_digest ON upload (digest);
