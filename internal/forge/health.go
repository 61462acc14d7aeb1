package forge

// HealthStatus says how far a runner can be used (07§124).
type HealthStatus uint8

// The statuses, from best to worst.
const (
	Healthy   HealthStatus = 1
	Degraded  HealthStatus = 2 // takes jobs; another runner is better
	Unhealthy HealthStatus = 3 // stays connected and gets no new lease (07§126)
)

// HealthCheckKind is what a health check looks at (07§125).
type HealthCheckKind uint8

// The checks.
const (
	CheckDiskSpace      HealthCheckKind = 1
	CheckCASAccess      HealthCheckKind = 2
	CheckSandbox        HealthCheckKind = 3
	CheckExecutor       HealthCheckKind = 4
	CheckToolchainStore HealthCheckKind = 5
	CheckDeviceDaemon   HealthCheckKind = 6
	CheckClock          HealthCheckKind = 7
	CheckCredential     HealthCheckKind = 8
)

// HealthCheck is what one check found.
type HealthCheck struct {
	Kind   HealthCheckKind
	Status HealthStatus
	Detail string // for people; one line of at most MaxTitle bytes
}

// Health is a runner's account of itself (07§123). Its status is that of its worst check.
type Health struct {
	Status HealthStatus
	Checks []HealthCheck // one of a kind
}

// HealthOf sums up checks.
func HealthOf(checks []HealthCheck) Health {
	h := Health{Status: Healthy, Checks: checks}
	for _, check := range checks {
		h.Status = max(h.Status, check.Status)
	}
	return h
}

// Validate checks that the status follows from the checks and that each kind is there once.
func (h Health) Validate() error {
	var c checker
	var root *where
	c.known(root.in("status"), h.Status.Valid(), h.Status)
	if c.count(root.in("checks"), len(h.Checks), len(checkNames)-1) {
		for i, check := range h.Checks {
			at := root.item("checks", i)
			c.known(at.in("kind"), check.Kind.Valid(), check.Kind)
			c.known(at.in("status"), check.Status.Valid(), check.Status)
			c.title(at.in("detail"), check.Detail, MaxTitle)
		}
		unique(&c, nil, "checks", h.Checks, func(check HealthCheck) HealthCheckKind { return check.Kind })
		if worst := HealthOf(h.Checks).Status; h.Status != worst {
			c.add(root.in("status"), "%v is not the %v of the worst check", h.Status, worst)
		}
	}
	return c.err()
}

var (
	healthNames = []string{"", "Healthy", "Degraded", "Unhealthy"}
	checkNames  = []string{
		"", "DiskSpace", "CasAccess", "Sandbox", "Executor", "ToolchainStore", "DeviceDaemon", "Clock", "Credential",
	}
)

func (s HealthStatus) String() string    { return name(healthNames, uint8(s)) }
func (k HealthCheckKind) String() string { return name(checkNames, uint8(k)) }

// Valid reports whether s is one of the statuses.
func (s HealthStatus) Valid() bool { return s >= Healthy && s <= Unhealthy }

// Valid reports whether k is one of the checks.
func (k HealthCheckKind) Valid() bool { return k >= CheckDiskSpace && k <= CheckCredential }
