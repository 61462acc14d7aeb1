// Package agentv1 holds the control messages between agents and daemons, one in each file: registration and
// certificates, leases and attempts, health, administration, and the values of secrets.
//
// Each wire struct knows its tag, validates itself and, where the domain has a value for it, converts to that and back:
// NewX makes the wire struct of a domain value, Domain the domain value of a wire struct. Enrolment, certificates,
// health and secrets have no message in the domain; their users work with the validated wire struct.
//
// The package decides nothing and knows nothing but forms. Pure.
package agentv1
