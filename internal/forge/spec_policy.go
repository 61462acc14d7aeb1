package forge

import (
	"slices"
	"time"
)

// Bounds of the durations and counts of a specification.
const (
	MaxRunTimeout   = 7 * 24 * time.Hour
	MaxPhaseTimeout = 24 * time.Hour // to prepare, to upload
	MaxGrace        = time.Hour
	MaxOffline      = 7 * 24 * time.Hour
	MaxRetries      = 10
)

// Timeouts bound each phase of an attempt. None may be zero: a job without an end is not accepted.
type Timeouts struct {
	Prepare time.Duration // from the grant to the first step
	Run     time.Duration // all steps
	Upload  time.Duration // outputs and the rest of the log
	Grace   time.Duration // from the soft signal to the hard kill
}

// ConnectivityPolicy says how long an attempt may go on without a daemon (07§112).
type ConnectivityPolicy struct {
	Mode  Connectivity
	Extra time.Duration // zero with Continuous; what the other modes add
}

// RetryPolicy says which failures are tried again without being asked (D09). The two budgets are separate: what broke on
// our side never uses up the author's.
type RetryPolicy struct {
	Max       uint8       // more attempts after a failure that On covers
	On        []RetryWord // RetryExit, RetrySignal, RetryTimeout, RetryOOM; ascending
	ExitCodes []uint8     // with RetryExit: only these; ascending, none of them 0
	Infra     uint8       // more attempts after an infrastructure failure; 0 for what must not run twice
}

var retryWords = []string{"", "", "exit", "signal", "timeout", "oom"}

var connectivityNames = []string{"", "continuous", "grace", "offline"}

func (c Connectivity) String() string { return name(connectivityNames, uint8(c)) }

// ParseConnectivity reads what String writes.
func ParseConnectivity(s string) (Connectivity, error) {
	return word[Connectivity]("connectivity", connectivityNames, s)
}

// Valid reports whether c is one of the policies.
func (c Connectivity) Valid() bool { return c >= Continuous && c <= OfflineAuthorized }

// ParseRetryWord reads a word that an author may list.
func ParseRetryWord(s string) (RetryWord, error) {
	return word[RetryWord]("retry reason", retryWords, s)
}

// Covers reports whether p's own words cover a failure of class c, with the exit code of the step that decided.
func (p RetryPolicy) Covers(c Class, exit uint8) bool {
	on := c.Retry()
	if on == RetryNever || on == RetryInfra || !slices.Contains(p.On, on) {
		return false
	}
	return on != RetryExit || len(p.ExitCodes) == 0 || slices.Contains(p.ExitCodes, exit)
}

// MaxLifetime is the longest time that a lease on the spec may live: every phase at its longest, and the graces.
func (s *JobSpec) MaxLifetime() time.Duration {
	t := s.Timeouts
	return t.Prepare + t.Run + t.Grace + t.Upload + s.Connectivity.Extra
}

func (c *checker) timeouts(t Timeouts) {
	at := (*where)(nil).in("timeouts")
	c.duration(at.in("prepare"), t.Prepare, MaxPhaseTimeout)
	c.duration(at.in("run"), t.Run, MaxRunTimeout)
	c.duration(at.in("upload"), t.Upload, MaxPhaseTimeout)
	c.duration(at.in("grace"), t.Grace, MaxGrace)
}

func (c *checker) connectivity(p ConnectivityPolicy) {
	at := (*where)(nil).in("connectivity")
	c.known(at.in("mode"), p.Mode.Valid(), p.Mode)
	if p.Mode == Continuous {
		if p.Extra != 0 {
			c.add(at.in("extra"), "%v is given to a job that needs its connection", p.Extra)
		}
		return
	}
	c.duration(at.in("extra"), p.Extra, MaxOffline)
}

func (c *checker) retry(p RetryPolicy) {
	at := (*where)(nil).in("retry")
	number(c, at.in("max"), p.Max, 0, MaxRetries)
	number(c, at.in("infra"), p.Infra, 0, MaxRetries)
	c.count(at.in("on"), len(p.On), len(retryWords)-2)
	for i, w := range p.On {
		if w < RetryExit || w > RetryOOM {
			c.add(at.item("on", i), "%d is no reason that can be listed", w)
		}
		if i > 0 && w <= p.On[i-1] {
			c.add(at.item("on", i), "is not above the one before")
		}
	}
	c.exitCodes(at, p.ExitCodes)
	if len(p.ExitCodes) > 0 && !slices.Contains(p.On, RetryExit) {
		c.add(at.in("exit_codes"), "are listed without the reason exit")
	}
}

func (c *checker) exitCodes(up *where, codes []uint8) {
	if !c.count(up.in("exit_codes"), len(codes), MaxExitCodes) {
		return
	}
	for i, code := range codes {
		if code == 0 {
			c.add(up.item("exit_codes", i), "0 is no failure")
		}
		if i > 0 && code <= codes[i-1] {
			c.add(up.item("exit_codes", i), "is not above the one before")
		}
	}
}
