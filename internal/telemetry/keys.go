package telemetry

// The keys of attributes in logs. One thing has one key in every program, so that one search finds it everywhere.
const (
	KeyRun        = "run"
	KeyJob        = "job"
	KeyAttempt    = "attempt"
	KeyLease      = "lease"
	KeyRunner     = "runner"
	KeySession    = "session"
	KeyConnection = "connection"
	KeyMessage    = "message" // the kind of a protocol message, never its payload (09§289)
	KeyMessageID  = "message_id"
	KeyPeer       = "peer" // an address
	KeyEndpoint   = "endpoint"
	KeyVersion    = "version"
	KeyState      = "state"
	KeyClass      = "class" // how an attempt ended
	KeyReason     = "reason"
	KeyCode       = "code"
	KeyError      = "err"
	KeyProgram    = "program" // which of several that are in one process
	KeyComponent  = "component"
	KeyPath       = "path"
	KeySignal     = "signal"
	KeyTook       = "took" // a duration
	KeyCount      = "count"
	KeyBytes      = "bytes"
	KeySeq        = "seq"
)
