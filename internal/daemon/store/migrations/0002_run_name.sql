-- A title of a run, for people. Runs of before have none.
ALTER TABLE run ADD COLUMN name TEXT NOT NULL DEFAULT '';
