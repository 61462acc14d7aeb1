-- Ids are 16 bytes and digests 32, all zero for none. Times are milliseconds since 1970 for people, 0 for never; durations
-- are nanoseconds. Unsigned 64-bit numbers are kept as the signed number of the same bits. Flags are 0 and 1.

CREATE TABLE counter (
    name  TEXT   NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);

CREATE TABLE project (
    name       TEXT   NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL
);

CREATE TABLE spec (
    id    BLOB NOT NULL PRIMARY KEY,
    bytes BLOB NOT NULL
);

CREATE TABLE run (
    id               BLOB   NOT NULL PRIMARY KEY,
    seq              BIGINT NOT NULL UNIQUE,
    project          TEXT   NOT NULL REFERENCES project (name),
    state            BIGINT NOT NULL,
    trust            BIGINT NOT NULL,
    idem             TEXT   NOT NULL,
    actor            TEXT   NOT NULL,
    cancel_requested BIGINT NOT NULL,
    cancel_actor     TEXT   NOT NULL,
    created_at       BIGINT NOT NULL,
    started_at       BIGINT NOT NULL,
    ended_at         BIGINT NOT NULL,
    unsettled        BIGINT NOT NULL
);
CREATE UNIQUE INDEX run_idem ON run (project, idem) WHERE idem <> '';
CREATE INDEX run_project ON run (project, seq);
CREATE INDEX run_unsettled ON run (seq) WHERE unsettled = 1;

CREATE TABLE job (
    id               BLOB   NOT NULL PRIMARY KEY,
    run              BLOB   NOT NULL REFERENCES run (id),
    run_seq          BIGINT NOT NULL,
    position         BIGINT NOT NULL,
    key              TEXT   NOT NULL,
    leg              TEXT   NOT NULL,
    needs            TEXT   NOT NULL,
    draft            BLOB   NOT NULL,
    state            BIGINT NOT NULL,
    cancel_requested BIGINT NOT NULL,
    spec             BLOB   NOT NULL,
    hard_ttl         BIGINT NOT NULL,
    max_lifetime     BIGINT NOT NULL,
    retry            TEXT   NOT NULL,
    attempts         BIGINT NOT NULL,
    free_retries     BIGINT NOT NULL,
    infra_retries    BIGINT NOT NULL,
    user_retries     BIGINT NOT NULL,
    outcome          BIGINT NOT NULL,
    open_attempt     BLOB   NOT NULL,
    open_lease       BLOB   NOT NULL,
    open_runner      BLOB   NOT NULL,
    open_session     BLOB   NOT NULL,
    created_at       BIGINT NOT NULL,
    ready_at         BIGINT NOT NULL,
    started_at       BIGINT NOT NULL,
    ended_at         BIGINT NOT NULL,
    changed_at       BIGINT NOT NULL,
    reason           TEXT   NOT NULL,
    UNIQUE (run, position)
);
CREATE INDEX job_ready ON job (run_seq, position) WHERE state = 2;

CREATE TABLE runner (
    id              BLOB   NOT NULL PRIMARY KEY,
    name            TEXT   NOT NULL,
    pool            TEXT   NOT NULL,
    trust           BIGINT NOT NULL,
    labels          TEXT   NOT NULL,
    slots           BIGINT NOT NULL,
    disabled        BIGINT NOT NULL,
    revoked         BIGINT NOT NULL,
    draining        BIGINT NOT NULL,
    last_reject     BIGINT NOT NULL,
    last_reject_job BLOB   NOT NULL,
    last_reject_at  BIGINT NOT NULL,
    reserved        TEXT   NOT NULL,
    summary         TEXT   NOT NULL,
    health          TEXT   NOT NULL,
    capabilities    TEXT   NOT NULL,
    capability_id   BLOB   NOT NULL,
    capabilities_at BIGINT NOT NULL,
    key             BLOB   NOT NULL,
    created_at      BIGINT NOT NULL,
    deleted_at      BIGINT NOT NULL
);
CREATE UNIQUE INDEX runner_name ON runner (name) WHERE deleted_at = 0;
CREATE INDEX runner_key ON runner (key);

CREATE TABLE session (
    runner            BLOB   NOT NULL PRIMARY KEY REFERENCES runner (id),
    session           BLOB   NOT NULL,
    state_folder      BLOB   NOT NULL,
    boot              BLOB   NOT NULL,
    start_counter     BIGINT NOT NULL,
    transport_seq     BIGINT NOT NULL,
    version           TEXT   NOT NULL,
    capability_digest BLOB   NOT NULL
);

CREATE TABLE folder (
    runner       BLOB   NOT NULL REFERENCES runner (id),
    state_folder BLOB   NOT NULL,
    highest      BIGINT NOT NULL,
    PRIMARY KEY (runner, state_folder)
);

CREATE TABLE beat (
    runner  BLOB   NOT NULL PRIMARY KEY REFERENCES runner (id),
    count   BIGINT NOT NULL,
    seen_at BIGINT NOT NULL
);

CREATE TABLE attempt (
    id          BLOB   NOT NULL PRIMARY KEY,
    job         BLOB   NOT NULL REFERENCES job (id),
    number      BIGINT NOT NULL,
    state       BIGINT NOT NULL,
    event_seq   BIGINT NOT NULL,
    outcome     BIGINT NOT NULL,
    completion  BLOB   NOT NULL,
    result_hash BLOB   NOT NULL,
    result      TEXT   NOT NULL,
    reject      BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    accepted_at BIGINT NOT NULL,
    started_at  BIGINT NOT NULL,
    ended_at    BIGINT NOT NULL,
    UNIQUE (job, number)
);

-- expires_at is for display. What ends a lease is that its renewals stand still.
CREATE TABLE lease (
    id            BLOB   NOT NULL PRIMARY KEY,
    job           BLOB   NOT NULL REFERENCES job (id),
    attempt       BLOB   NOT NULL UNIQUE REFERENCES attempt (id),
    spec          BLOB   NOT NULL,
    runner        BLOB   NOT NULL REFERENCES runner (id),
    session       BLOB   NOT NULL,
    state_folder  BLOB   NOT NULL,
    boot          BLOB   NOT NULL,
    start_counter BIGINT NOT NULL,
    state         BIGINT NOT NULL,
    renewals      BIGINT NOT NULL,
    hard_ttl      BIGINT NOT NULL,
    lived         BIGINT NOT NULL,
    max_lifetime  BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL
);
CREATE UNIQUE INDEX lease_open_job ON lease (job) WHERE state <= 2;
CREATE INDEX lease_open_runner ON lease (runner, id) WHERE state <= 2;
CREATE INDEX lease_refused ON lease (job, runner) WHERE state = 4;

CREATE TABLE log (
    attempt    BLOB   NOT NULL PRIMARY KEY REFERENCES attempt (id),
    runner     BLOB   NOT NULL,
    next       BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    hash       BLOB   NOT NULL,
    sealed     BIGINT NOT NULL,
    seal_last  BIGINT NOT NULL,
    seal_bytes BIGINT NOT NULL,
    seal_hash  BLOB   NOT NULL
);
CREATE INDEX log_unsealed ON log (attempt) WHERE sealed = 0;

CREATE TABLE upload (
    attempt BLOB   NOT NULL REFERENCES attempt (id),
    output  BIGINT NOT NULL,
    tree    BIGINT NOT NULL,
    digest  BLOB   NOT NULL,
    bytes   BIGINT NOT NULL,
    live    BIGINT NOT NULL,
    PRIMARY KEY (attempt, output, tree, digest, bytes)
);

CREATE TABLE token (
    hash       BLOB   NOT NULL PRIMARY KEY,
    seq        BIGINT NOT NULL UNIQUE,
    name       TEXT   NOT NULL,
    pool       TEXT   NOT NULL,
    trust      BIGINT NOT NULL,
    labels     TEXT   NOT NULL,
    slots      BIGINT NOT NULL,
    creator    TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_by    BLOB   NOT NULL,
    used_at    BIGINT NOT NULL,
    runner     BLOB   NOT NULL
);

CREATE TABLE certificate (
    serial     TEXT   NOT NULL PRIMARY KEY,
    seq        BIGINT NOT NULL UNIQUE,
    runner     BLOB   NOT NULL REFERENCES runner (id),
    key        BLOB   NOT NULL,
    not_before BIGINT NOT NULL,
    not_after  BIGINT NOT NULL,
    issued_at  BIGINT NOT NULL,
    used_at    BIGINT NOT NULL,
    superseded BIGINT NOT NULL
);
CREATE INDEX certificate_runner ON certificate (runner, seq);

CREATE TABLE audit (
    seq     BIGINT NOT NULL PRIMARY KEY,
    at      BIGINT NOT NULL,
    kind    TEXT   NOT NULL,
    actor   TEXT   NOT NULL,
    runner  BLOB   NOT NULL,
    subject TEXT   NOT NULL,
    detail  TEXT   NOT NULL
);
