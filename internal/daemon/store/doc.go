// Package store is the daemon's database: the rows that authority rests on, and everything that has to outlive a process.
//
// A rule of package authority is carried out as one transaction: its keys are loaded, Apply decides, what it marked is
// written, and the answer is given back when the commit is known. Nothing is decided here a second time. Runs, runners,
// tokens, certificates and audit events are Go records; no SQL and no row leaves the package.
//
//	callers ──Do, Update──► queues: lease | state | rest ──► writer goroutine ──► one connection, one transaction at a time
//	callers ──View, Snapshot──► reader connections (query_only)          │ after each commit
//	                                                                     ├──► answers
//	                                                                     ├──► Changes of each subscription
//	                                                                     └──► checkpoint goroutine, its own connection
//
// The writer collects what arrived during its last commit, the lease class first, runs each request in a savepoint of its
// own inside one transaction, commits, and only then answers all. What goes wrong in one request rolls its savepoint back
// and nobody else's. A commit whose fate nobody can tell answers ErrUnknown and ends all writing until the database is
// opened again: whatever the disk has then is the truth.
//
// The package refuses: a folder that another daemon has open, a database that a newer build has changed, a migration that
// was edited after it was applied, and more waiting requests than a queue may hold (ErrBusy).
//
// SQLite serializes writers, so Key.Lock has nothing to do here. A twin on PostgreSQL (READ COMMITTED, on the primary)
// would run the statements of Keys in their order with FOR SHARE for authority.Share and FOR UPDATE for authority.Update,
// check affected rows, and retry on 40001, 40P01 and 23505. The statements keep to what both understand: no rowid, no
// json functions, no arrays, ON CONFLICT for upserts, integers for times and flags.
//
// Times in rows are wall times for people. No rule reads one; the only decision on a wall clock is the expiry of an
// enrolment token, which is a date.
//
// The writer and the checkpoint goroutine belong to the Store and end in Close. Everything exported is safe for concurrent
// use, except View and Tx, which belong to the function that they were given to.
package store
