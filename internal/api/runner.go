package api

// Runner is a machine that takes jobs: GET runners, GET runners/{id}.
type Runner struct {
	ID           string        `json:"id"`
	Name         string        `json:"name"`
	State        string        `json:"state"` // online, draining, offline, disabled, revoked, never; too old, too new and other version of one that was refused
	Pool         string        `json:"pool"`
	Trust        string        `json:"trust"`
	Labels       []string      `json:"labels,omitempty"` // given by an administrator
	Slots        int           `json:"slots"`
	Connected    bool          `json:"connected"`
	Draining     bool          `json:"draining,omitempty"`
	Disabled     bool          `json:"disabled,omitempty"`
	Revoked      bool          `json:"revoked,omitempty"`
	Version      string        `json:"version,omitempty"`  // of its program
	Protocol     string        `json:"protocol,omitempty"` // that was negotiated
	Health       string        `json:"health,omitempty"`
	Checks       []HealthCheck `json:"checks,omitempty"`
	Capabilities *Capabilities `json:"capabilities,omitempty"`
	Load         *Load         `json:"load,omitempty"`
	Active       []string      `json:"active,omitempty"` // attempts that it holds
	LastReject   *Reject       `json:"last_reject,omitempty"`
	Refused      *Refusal      `json:"refused,omitempty"` // of one that is not connected for its agent's version
	CreatedAt    *Time         `json:"created_at,omitempty"`
	SeenAt       *Time         `json:"seen_at,omitempty"`
	Certificate  *Certificate  `json:"certificate,omitempty"` // the one that expires last
}

// HealthCheck is what one check of a runner found.
type HealthCheck struct {
	Kind   string `json:"kind"`
	Status string `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// Capabilities is what a runner says of itself, in short.
type Capabilities struct {
	OS         string     `json:"os"`
	Arch       string     `json:"arch"`
	System     string     `json:"system,omitempty"`
	Resources  *Resources `json:"resources,omitempty"`
	Sandboxes  []Sandbox  `json:"sandboxes,omitempty"`
	Devices    []Device   `json:"devices,omitempty"`
	Labels     []string   `json:"labels,omitempty"`
	Features   []string   `json:"features,omitempty"`
	Toolchains []string   `json:"toolchains,omitempty"`
	Digest     string     `json:"digest,omitempty"`
}

// Load is what a runner's last heartbeat said.
type Load struct {
	Total    *Resources `json:"total"`
	Reserved *Resources `json:"reserved"`
	Active   *Resources `json:"active"`
	Free     *Resources `json:"free"`
	Pressure string     `json:"pressure,omitempty"`
}

// Refusal is why a runner's agent was not let in.
type Refusal struct {
	Reason string `json:"reason"` // the close code
	Why    string `json:"why"`    // for people
	At     *Time  `json:"at"`
}

// Reject is why a runner last gave an offer back.
type Reject struct {
	Reason string `json:"reason"`
	At     *Time  `json:"at,omitempty"`
}

// Certificate is a runner's credential.
type Certificate struct {
	Serial    string `json:"serial"`
	ExpiresAt *Time  `json:"expires_at"`
	Revoked   bool   `json:"revoked,omitempty"`
}

// RunnerRequest makes a runner before its machine comes: POST runners. What is absent has its default: pool "default",
// trust "trusted", one slot. The answer is the runner with an enrolment token for it.
type RunnerRequest struct {
	Name      string    `json:"name"`
	Pool      string    `json:"pool,omitempty"`
	Trust     string    `json:"trust,omitempty"`
	Labels    []string  `json:"labels,omitempty"`
	Slots     *uint32   `json:"slots,omitempty"`
	ExpiresIn *Duration `json:"expires_in,omitempty"` // of the token
}

// RunnerCreated answers it.
type RunnerCreated struct {
	Runner Runner          `json:"runner"`
	Token  EnrollmentToken `json:"token"`
}

// TokenRequest asks for a token with which one machine makes itself a runner: POST enrollment-tokens.
type TokenRequest struct {
	Name      string    `json:"name,omitempty"` // of the runner; the machine's own where none is named
	Pool      string    `json:"pool,omitempty"`
	Trust     string    `json:"trust,omitempty"`
	Labels    []string  `json:"labels,omitempty"`
	Slots     *uint32   `json:"slots,omitempty"`
	ExpiresIn *Duration `json:"expires_in,omitempty"` // 15 minutes where nothing is said, at most 24 hours
}

// EnrollmentToken is a token as its maker sees it. Token is its text, there once, in the answer to the request that made
// it: only a hash is kept.
type EnrollmentToken struct {
	ID          string   `json:"id"`
	Token       string   `json:"token,omitempty"`
	Name        string   `json:"name,omitempty"`
	Runner      string   `json:"runner,omitempty"` // that it is for
	Pool        string   `json:"pool"`
	Trust       string   `json:"trust"`
	Labels      []string `json:"labels,omitempty"`
	Slots       int      `json:"slots"`
	State       string   `json:"state"` // open, used, expired
	Fingerprint string   `json:"ca_fingerprint,omitempty"`
	CreatedAt   *Time    `json:"created_at,omitempty"`
	ExpiresAt   *Time    `json:"expires_at"`
}

// RunnerExplanation says why a runner gets no more jobs: GET runners/{id}/explain.
type RunnerExplanation struct {
	Runner     string      `json:"runner"`
	Summary    string      `json:"summary"`
	Details    []string    `json:"details,omitempty"`
	Free       *Resources  `json:"free,omitempty"`
	HeldFor    string      `json:"held_for,omitempty"`
	LastReject *Reject     `json:"last_reject,omitempty"`
	Jobs       []PassedJob `json:"jobs,omitempty"`
}

// PassedJob is a waiting job that the runner did not get.
type PassedJob struct {
	Job    string `json:"job"`
	Misses []Miss `json:"misses,omitempty"`
}

// Session is one connection of an agent: GET transport/sessions.
type Session struct {
	ID           string   `json:"id"`
	Runner       string   `json:"runner"`
	RunnerName   string   `json:"runner_name,omitempty"`
	AgentSession string   `json:"agent_session,omitempty"`
	Remote       string   `json:"remote,omitempty"`
	State        string   `json:"state"`
	Protocol     string   `json:"protocol,omitempty"`
	Software     string   `json:"software,omitempty"`
	Features     []string `json:"features,omitempty"`
	SinceAt      *Time    `json:"since,omitempty"`
	HeartbeatAt  *Time    `json:"last_heartbeat,omitempty"`
}

// Protocols is what this daemon speaks: GET transport/protocols.
type Protocols struct {
	Least    string   `json:"least"`
	Most     string   `json:"most"`
	ALPN     []string `json:"alpn"`
	Features []string `json:"features,omitempty"`
}

// TransportStatus is the daemon's own side: GET transport/status.
type TransportStatus struct {
	Listen      string `json:"listen"`
	Fingerprint string `json:"ca_fingerprint"`
	Connections int    `json:"connections"`
	Version     string `json:"version"`
}

// AuditEntry is one act that somebody may have to look at: GET audit.
type AuditEntry struct {
	ID     string `json:"id"`
	At     *Time  `json:"at"`
	Actor  string `json:"actor"`
	Action string `json:"action"`
	Target string `json:"target,omitempty"`
	Runner string `json:"runner,omitempty"` // that it is about, beside the target
	Detail string `json:"detail,omitempty"`
}

// Health answers GET /healthz and GET /readyz. The latter comes with 503 where something is not well.
type Health struct {
	Status string  `json:"status"` // ok, not ready
	Checks []Check `json:"checks,omitempty"`
}

// Check is one part of the daemon.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// Version answers GET version.
type Version struct {
	Version  string `json:"version"`
	Protocol string `json:"protocol,omitempty"`
}
