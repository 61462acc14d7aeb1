-- What runs were planned from: the text of a pipeline file, once for each digest, and what was known of each run when it was
-- submitted, which belongs to whoever plans. A lane keeps runs or jobs of one project from running at the same time.
CREATE TABLE pipeline (
    id   BLOB NOT NULL PRIMARY KEY,
    text BLOB NOT NULL
);
CREATE TABLE origin (
    run      BLOB NOT NULL PRIMARY KEY REFERENCES run (id),
    pipeline BLOB NOT NULL REFERENCES pipeline (id),
    facts    BLOB NOT NULL
);
ALTER TABLE run ADD COLUMN lane TEXT NOT NULL DEFAULT '';
ALTER TABLE job ADD COLUMN lane TEXT NOT NULL DEFAULT '';
ALTER TABLE job ADD COLUMN title TEXT NOT NULL DEFAULT '';
CREATE INDEX run_lane ON run (project, lane, seq) WHERE lane <> '' AND state <= 2;
CREATE INDEX job_lane ON job (lane, run_seq, position) WHERE lane <> '' AND state >= 2 AND state <= 4;
