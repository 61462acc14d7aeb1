-- A run that tries again what another has left undone: which one, and the jobs of earlier runs whose results count in it.
ALTER TABLE run ADD COLUMN retry_of BLOB NOT NULL DEFAULT x'00000000000000000000000000000000';
CREATE TABLE taken (
    run      BLOB   NOT NULL REFERENCES run (id),
    position BIGINT NOT NULL,
    job      BLOB   NOT NULL REFERENCES job (id),
    PRIMARY KEY (run, position)
);
