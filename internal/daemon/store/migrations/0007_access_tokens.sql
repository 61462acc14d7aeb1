-- Tokens that people and programs show to the HTTP interface. Only a hash of the secret is kept. expires_at, used_at and
-- revoked_at are zero where that never happens or has not happened.
CREATE TABLE access_token (
    id         BLOB   NOT NULL PRIMARY KEY,
    seq        BIGINT NOT NULL,
    name       TEXT   NOT NULL,
    role       BIGINT NOT NULL,
    trust      BIGINT NOT NULL,
    hash       BLOB   NOT NULL,
    creator    TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at    BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL
);
CREATE INDEX access_token_seq ON access_token (seq);
CREATE INDEX access_token_name ON access_token (name);
