package forge

// TrustClass says how far the author of a run is trusted, and how far a runner is. It comes from the server on both
// sides: of a run from the role of the token that submitted it, of a runner from its administrator. Neither a repository
// nor an agent can claim it (07§22, 07§134).
type TrustClass uint8

// The trust classes, lowest first.
const (
	TrustUntrusted TrustClass = 1 // a stranger's change
	TrustTrusted   TrustClass = 2 // by people who may push
	TrustProtected TrustClass = 3 // releases and deployments
)

var trustNames = []string{"", "untrusted", "trusted", "protected"}

func (t TrustClass) String() string { return name(trustNames, uint8(t)) }

// ParseTrustClass reads what String writes.
func ParseTrustClass(s string) (TrustClass, error) {
	return word[TrustClass]("trust class", trustNames, s)
}

// Valid reports whether t is one of the classes.
func (t TrustClass) Valid() bool { return t >= TrustUntrusted && t <= TrustProtected }

// Runs reports whether a runner of class t may run a job of class job: none above its own; and a protected runner runs
// protected jobs only, so that nothing a lesser job leaves behind can meet a release.
func (t TrustClass) Runs(job TrustClass) bool {
	return t.Valid() && job.Valid() && job <= t && (t != TrustProtected || job == TrustProtected)
}

// DefaultPool is the pool of runners and jobs that name no other.
const DefaultPool = "default"

// Runner is what the server knows and decides about a runner: everything that an agent may not say of itself.
type Runner struct {
	ID       RunnerID
	Name     string
	Pool     string
	Trust    TrustClass
	Labels   []string  // given by an administrator, besides those that the agent reports
	Disabled bool      // may not connect
	Draining bool      // gets no new lease
	Reserved Resources // kept for the host by an administrator (07§222)
	Version  string    // of the agent's program, as it last registered
}

// Validate checks names and bounds.
func (r Runner) Validate() error {
	var c checker
	var root *where
	if r.ID.IsZero() {
		c.add(root.in("id"), "is missing")
	}
	c.name(root.in("name"), r.Name)
	c.name(root.in("pool"), r.Pool)
	c.known(root.in("trust"), r.Trust.Valid(), r.Trust)
	c.labels(nil, r.Labels)
	c.resources(root.in("reserved"), r.Reserved, Resources{})
	c.title(root.in("version"), r.Version, MaxTitle)
	return c.err()
}
