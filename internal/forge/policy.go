package forge

import "time"

// LocalPolicy is what the owner of a machine forbids (07§217). It can only tighten (07§218): it answers no to specs that
// the daemon finds good, and it changes nothing in them. Zero switches are off; a zero bound is no bound of its own.
type LocalPolicy struct {
	AllowHostNetwork bool
	AllowUnconfined  bool          // SandboxProcess, which confines nothing
	MostPerJob       Resources     // each amount by itself
	MostProcesses    uint32        // of one job
	LongestRun       time.Duration // of one job's steps
	LongestOffline   time.Duration // that a job may go on without a daemon, beyond the lease's own time
}

// Check reports whether the policy forbids the spec: a zero reason and nil if it does not, else RejectLocalPolicy and an
// error that names everything it objects to, for the agent's log and for "why".
func (p LocalPolicy) Check(s *JobSpec) (RejectReason, error) {
	var c checker
	var root *where
	if s.Network == NetworkHost && !p.AllowHostNetwork {
		c.add(root.in("network"), "local policy forbids the host's network")
	}
	if s.Sandbox.Kind == SandboxProcess && !p.AllowUnconfined {
		c.add(root.in("sandbox"), "local policy forbids jobs that are not confined")
	}
	most := root.in("resources")
	limit(&c, most.in("cpu"), s.Resources.CPU, p.MostPerJob.CPU)
	limit(&c, most.in("memory"), s.Resources.Memory, p.MostPerJob.Memory)
	limit(&c, most.in("disk"), s.Resources.Disk, p.MostPerJob.Disk)
	limit(&c, most.in("slots"), s.Resources.Slots, p.MostPerJob.Slots)
	limit(&c, root.in("processes"), s.Processes, p.MostProcesses)
	limit(&c, root.in("timeouts").in("run"), s.Timeouts.Run, p.LongestRun)
	limit(&c, root.in("connectivity").in("extra"), s.Connectivity.Extra, p.LongestOffline)
	if err := c.err(); err != nil {
		return RejectLocalPolicy, err
	}
	return 0, nil
}

// Tighten returns the policy that forbids what p or o forbids.
func (p LocalPolicy) Tighten(o LocalPolicy) LocalPolicy {
	return LocalPolicy{
		AllowHostNetwork: p.AllowHostNetwork && o.AllowHostNetwork,
		AllowUnconfined:  p.AllowUnconfined && o.AllowUnconfined,
		MostPerJob: Resources{
			CPU:    tighter(p.MostPerJob.CPU, o.MostPerJob.CPU),
			Memory: tighter(p.MostPerJob.Memory, o.MostPerJob.Memory),
			Disk:   tighter(p.MostPerJob.Disk, o.MostPerJob.Disk),
			Slots:  tighter(p.MostPerJob.Slots, o.MostPerJob.Slots),
		},
		MostProcesses:  tighter(p.MostProcesses, o.MostProcesses),
		LongestRun:     tighter(p.LongestRun, o.LongestRun),
		LongestOffline: tighter(p.LongestOffline, o.LongestOffline),
	}
}

type bounded interface {
	~uint32 | ~uint64 | ~int64
}

// limit checks n against a bound, of which zero is none.
func limit[T bounded](c *checker, at *where, n, most T) {
	if most != 0 && n > most {
		c.add(at, "%v is more than the %v of local policy", n, most)
	}
}

// tighter returns the lower of two bounds, of which zero is none.
func tighter[T bounded](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Admission is what an agent holds an offered spec against before it accepts, and again before it starts anything
// (07§30, 07§225): the scheduler may have been wrong, or the machine may have changed since.
type Admission struct {
	Capabilities Capabilities
	Policy       LocalPolicy
	Free         Resources // allocatable now
	Removing     int       // attempts whose files are being removed, which have a part of the rest
	NoCaches     bool      // this agent keeps no caches: it takes no spec with one
}

// Check reports whether the agent can run the spec: a zero reason and nil if so, else the reason to reject it with and an
// error that names everything that is missing.
func (a *Admission) Check(s *JobSpec) (RejectReason, error) {
	if err := s.Validate(); err != nil {
		return RejectUnsupportedSpec, err
	}
	if err := a.caches(s); err != nil {
		return RejectUnsupportedSpec, err
	}
	if reason, err := a.Policy.Check(s); err != nil {
		return reason, err
	}
	need := s.Need()
	need.Constraints.Labels = nil // an administrator gives some of them, so only the scheduler knows them all
	var c checker
	for miss := range need.Misses(&a.Capabilities) {
		c.add(nil, "%v", miss)
	}
	if err := c.err(); err != nil {
		return RejectCapabilityChanged, err
	}
	for miss := range s.Resources.Misses(MissBusy, a.Free) {
		c.add(nil, "%v", miss)
	}
	switch err := c.err(); {
	case err == nil:
		return 0, nil
	case s.Resources.Disk > a.Free.Disk:
		return RejectDiskInsufficient, err
	default:
		return RejectResourcePressure, err
	}
}

// caches refuses what an agent without caches could not deliver.
func (a *Admission) caches(s *JobSpec) error {
	if !a.NoCaches || len(s.Caches) == 0 {
		return nil
	}
	var c checker
	var root *where
	c.add(root.in("caches"), "this agent keeps no caches yet")
	return c.err()
}
