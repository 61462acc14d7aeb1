-- Secrets of projects. What is sealed was encrypted before it came here, for its project, name and version, under a key of
-- which only the digest is known here. last is the highest version that a name ever had: it stays when its values go, so that
-- no number comes to mean another value.
CREATE TABLE secret (
    project TEXT   NOT NULL,
    name    TEXT   NOT NULL,
    last    BIGINT NOT NULL,
    PRIMARY KEY (project, name)
);
CREATE TABLE secret_value (
    project    TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    version    BIGINT NOT NULL,
    key        BLOB   NOT NULL,
    sealed     BLOB   NOT NULL,
    actor      TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project, name, version)
);
