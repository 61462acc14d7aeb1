package forge

import "strconv"

// The states of everything that lives over time (D03 of the design; 07§12, 09§101). Numbers are written out because
// they are stored. Zero is never a state. Which change is legal is said by package lifecycle alone.

// RunState is where a run stands.
type RunState uint8

// The states of a run.
const (
	RunPlanned   RunState = 1
	RunRunning   RunState = 2
	RunSucceeded RunState = 3
	RunFailed    RunState = 4
	RunCancelled RunState = 5
	RunError     RunState = 6 // ended by a fault of ours, not of its jobs
)

// JobState is where a job stands.
type JobState uint8

// The states of a job.
const (
	JobWaiting   JobState = 1 // for its needs
	JobReady     JobState = 2 // planned; its spec is fixed; may be offered
	JobOffered   JobState = 3
	JobActive    JobState = 4 // a lease on it was accepted
	JobSucceeded JobState = 5
	JobFailed    JobState = 6
	JobCancelled JobState = 7
	JobSkipped   JobState = 8
)

// AttemptState is where an attempt stands. Agent and daemon use the same states; on the agent, Offered means that the
// acceptance has no answer yet.
type AttemptState uint8

// The states of an attempt.
const (
	AttemptOffered    AttemptState = 1
	AttemptAccepted   AttemptState = 2 // granted; nothing was started
	AttemptPreparing  AttemptState = 3
	AttemptRunning    AttemptState = 4
	AttemptUploading  AttemptState = 5 // the workload has ended; outputs are on their way
	AttemptCompleting AttemptState = 6
	AttemptSucceeded  AttemptState = 7
	AttemptFailed     AttemptState = 8
	AttemptCancelled  AttemptState = 9
	AttemptLost       AttemptState = 10
	AttemptRefused    AttemptState = 11
)

// LeaseState is where a lease stands.
type LeaseState uint8

// The states of a lease. Each Ended state also says why.
const (
	LeaseOffered  LeaseState = 1
	LeaseAccepted LeaseState = 2
	LeaseReleased LeaseState = 3 // its completion was accepted
	LeaseRefused  LeaseState = 4 // the agent refused it before any start
	LeaseRevoked  LeaseState = 5 // cancelled while it was only offered
	LeaseExpired  LeaseState = 6 // nobody renewed or accepted it in time
	LeaseLost     LeaseState = 7 // its agent said that nothing of it is left
)

// AgentState is where an agent process stands (07§12).
type AgentState uint8

// The states of an agent.
const (
	AgentStarting     AgentState = 1
	AgentConnecting   AgentState = 2
	AgentRegistering  AgentState = 3
	AgentOnline       AgentState = 4
	AgentDraining     AgentState = 5
	AgentReconnecting AgentState = 6
	AgentShuttingDown AgentState = 7
	AgentOffline      AgentState = 8
)

// ConnectionState is where one connection stands (09§101, with Resyncing between registration and work).
type ConnectionState uint8

// The states of a connection.
const (
	ConnConnecting     ConnectionState = 1
	ConnAuthenticating ConnectionState = 2
	ConnNegotiating    ConnectionState = 3
	ConnRegistering    ConnectionState = 4
	ConnResyncing      ConnectionState = 5
	ConnActive         ConnectionState = 6
	ConnDraining       ConnectionState = 7
	ConnClosing        ConnectionState = 8
	ConnClosed         ConnectionState = 9
)

// Ended reports whether the run is over.
func (s RunState) Ended() bool { return s >= RunSucceeded }

// Ended reports whether the job is over.
func (s JobState) Ended() bool { return s >= JobSucceeded }

// Ended reports whether the attempt is over.
func (s AttemptState) Ended() bool { return s >= AttemptSucceeded }

// WorkloadOver reports whether the workload of an attempt in this state can no longer be alive.
func (s AttemptState) WorkloadOver() bool { return s >= AttemptUploading }

// Ended reports whether the lease is over. An ended lease never comes back.
func (s LeaseState) Ended() bool { return s >= LeaseReleased }

var (
	runNames     = []string{"", "Planned", "Running", "Succeeded", "Failed", "Cancelled", "Error"}
	jobNames     = []string{"", "Waiting", "Ready", "Offered", "Active", "Succeeded", "Failed", "Cancelled", "Skipped"}
	attemptNames = []string{"", "Offered", "Accepted", "Preparing", "Running", "Uploading", "Completing", "Succeeded", "Failed", "Cancelled", "Lost", "Refused"}
	leaseNames   = []string{"", "Offered", "Accepted", "Released", "Refused", "Revoked", "Expired", "Lost"}
	agentNames   = []string{"", "Starting", "Connecting", "Registering", "Online", "Draining", "Reconnecting", "ShuttingDown", "Offline"}
	connNames    = []string{"", "Connecting", "Authenticating", "Negotiating", "Registering", "Resyncing", "Active", "Draining", "Closing", "Closed"}
)

func (s RunState) String() string        { return name(runNames, uint8(s)) }
func (s JobState) String() string        { return name(jobNames, uint8(s)) }
func (s AttemptState) String() string    { return name(attemptNames, uint8(s)) }
func (s LeaseState) String() string      { return name(leaseNames, uint8(s)) }
func (s AgentState) String() string      { return name(agentNames, uint8(s)) }
func (s ConnectionState) String() string { return name(connNames, uint8(s)) }

// name spells a numbered value; a number outside the list is shown as such, since it can only come from a fault.
func name(names []string, n uint8) string {
	if int(n) < len(names) && names[n] != "" {
		return names[n]
	}
	return "invalid(" + strconv.Itoa(int(n)) + ")"
}
