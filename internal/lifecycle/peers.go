package lifecycle

import "github.com/forgeyard/forgeyard/internal/forge"

// Events of an agent process.
const (
	AgentDial     Event = "dial"
	AgentReach    Event = "reach" // the connection stands; registration was sent
	AgentSync     Event = "sync"  // registered and resynced
	AgentDrain    Event = "drain"
	AgentResume   Event = "resume"
	AgentCutOff   Event = "cut-off"
	AgentShutdown Event = "shutdown"
	AgentStop     Event = "stop"
)

var alive = []forge.AgentState{
	forge.AgentStarting, forge.AgentConnecting, forge.AgentRegistering, forge.AgentOnline, forge.AgentDraining, forge.AgentReconnecting,
}

// Agent is the machine of an agent process (07§12).
var Agent = newTable("agent", join(
	fan(AgentDial, forge.AgentConnecting, forge.AgentStarting, forge.AgentReconnecting),
	fan(AgentReach, forge.AgentRegistering, forge.AgentConnecting),
	fan(AgentSync, forge.AgentOnline, forge.AgentRegistering),
	fan(AgentDrain, forge.AgentDraining, forge.AgentOnline),
	fan(AgentResume, forge.AgentOnline, forge.AgentDraining),
	fan(AgentCutOff, forge.AgentReconnecting, forge.AgentConnecting, forge.AgentRegistering, forge.AgentOnline, forge.AgentDraining),
	fan(AgentShutdown, forge.AgentShuttingDown, alive...),
	fan(AgentStop, forge.AgentOffline, append([]forge.AgentState{forge.AgentShuttingDown}, alive...)...),
)...)

// Events of a connection.
const (
	ConnReach        Event = "reach"        // the path stands; TLS runs
	ConnAuthenticate Event = "authenticate" // the peer's certificate is good
	ConnNegotiate    Event = "negotiate"    // a version was chosen
	ConnRegister     Event = "register"     // the registration was accepted
	ConnSync         Event = "sync"         // every lease has its verdict
	ConnDrain        Event = "drain"
	ConnClose        Event = "close" // we are closing
	ConnGone         Event = "gone"  // it is closed
)

var open = []forge.ConnectionState{
	forge.ConnConnecting, forge.ConnAuthenticating, forge.ConnNegotiating, forge.ConnRegistering,
	forge.ConnResyncing, forge.ConnActive, forge.ConnDraining,
}

// Connection is the machine of one connection (09§101, 09§186).
var Connection = newTable("connection", join(
	fan(ConnReach, forge.ConnAuthenticating, forge.ConnConnecting),
	fan(ConnAuthenticate, forge.ConnNegotiating, forge.ConnAuthenticating),
	fan(ConnNegotiate, forge.ConnRegistering, forge.ConnNegotiating),
	fan(ConnRegister, forge.ConnResyncing, forge.ConnRegistering),
	fan(ConnSync, forge.ConnActive, forge.ConnResyncing),
	fan(ConnDrain, forge.ConnDraining, forge.ConnActive),
	fan(ConnClose, forge.ConnClosing, open...),
	fan(ConnGone, forge.ConnClosed, append([]forge.ConnectionState{forge.ConnClosing}, open...)...),
)...)
