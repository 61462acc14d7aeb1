package protocol

import "slices"

// ALPN names the framing and the family of peers of a connection, in the TLS handshake. The version of the protocol is
// not in it: a refusal in Hello can say which versions the server has, a TLS alert cannot.
type ALPN string

// The names. Signing and device are reserved: this build listens for neither.
const (
	ALPNAgent   ALPN = "forgeyard-agent/1"
	ALPNEnroll  ALPN = "forgeyard-enroll/1" // no client certificate: only Hello and Enroll
	ALPNSigning ALPN = "forgeyard-signing/1"
	ALPNDevice  ALPN = "forgeyard-device/1"
)

// Role is what a peer of a daemon is (09§59).
type Role uint8

// The roles. Zero, and a number that this build does not know, refuse the Hello.
const (
	RoleAgent          Role = 1
	RoleDeviceAgent    Role = 2
	RoleSigningWorker  Role = 3
	RoleInternalWorker Role = 4
)

var roleNames = Enum[string]{1: "Agent", 2: "DeviceAgent", 3: "SigningWorker", 4: "InternalWorker"}

func (r Role) String() string { return roleNames.Name(uint8(r)) }

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return roleNames.Known(uint8(r)) }

// Family groups messages that are versioned and allowed together (09§29).
type Family uint8

// The families.
const (
	FamilySession      Family = 1  // Hello, HelloAck, GoAway, Error
	FamilyEnroll       Family = 2  // the way to a first certificate
	FamilyRegistration Family = 3  // registration and the next certificates
	FamilyAgent        Family = 4  // leases and attempts
	FamilyHealth       Family = 5  // what a runner says of itself
	FamilyAdmin        Family = 6  // the only commands: there is no text in any of them
	FamilyLog          Family = 7  // logs
	FamilyCAS          Family = 8  // objects
	FamilySecret       Family = 9  // values of secrets, on streams of their own
	FamilySigning      Family = 10 // reserved
	FamilyDevice       Family = 11 // reserved
)

var familyNames = Enum[string]{
	1: "session", 2: "enroll", 3: "registration", 4: "agent", 5: "health", 6: "admin", 7: "log", 8: "cas", 9: "secret",
	10: "signing", 11: "device",
}

func (f Family) String() string { return familyNames.Name(uint8(f)) }

// shared is what every role speaks.
var shared = []Family{FamilySession, FamilyEnroll, FamilyRegistration}

// families is what each role speaks besides. A row lists everything: what is not in it is a violation (09§192).
var families = [...][]Family{
	RoleAgent:          {FamilyAgent, FamilyHealth, FamilyAdmin, FamilyLog, FamilyCAS, FamilySecret},
	RoleDeviceAgent:    {FamilyDevice},
	RoleSigningWorker:  {FamilySigning},
	RoleInternalWorker: {FamilyHealth},
}

// Speaks reports whether a role may send or get messages of a family.
func (r Role) Speaks(f Family) bool {
	return r.Valid() && (slices.Contains(shared, f) || slices.Contains(families[r], f))
}

// Carries reports whether messages of a family may travel on a connection of that name.
func (a ALPN) Carries(f Family) bool {
	if a == ALPNEnroll {
		return f == FamilySession || f == FamilyEnroll
	}
	return f != FamilyEnroll
}

// Admits reports whether a connection of that name is for a role.
func (a ALPN) Admits(r Role) bool {
	switch a {
	case ALPNEnroll:
		return r.Valid()
	case ALPNAgent:
		return r == RoleAgent || r == RoleInternalWorker
	case ALPNSigning:
		return r == RoleSigningWorker
	case ALPNDevice:
		return r == RoleDeviceAgent
	}
	return false
}

// FamilyOf returns the family of a type id, also of the reserved ranges, or 0.
func FamilyOf(id TypeID) Family {
	if info, ok := Lookup(id); ok {
		return info.Family
	}
	switch id >> 8 {
	case 0x09:
		return FamilySigning
	case 0x0a:
		return FamilyDevice
	}
	return 0
}
