// Package trust says who somebody is: the certificate authority of a cluster, the certificates that it gives to its
// daemons and runners, the one-time tokens with which a runner gets its first one, and the TLS settings that hold all of
// them to that.
//
//	CA ── signs ──> daemon   spiffe://<cluster>/daemon             server only, lives in memory, swapped while serving
//	   └─ signs ──> runner   spiffe://<cluster>/runner/<RunnerID>  client only, its key never leaves the agent
//
// Keys are Ed25519 throughout. Both ends are ours, so nothing needs to be compatible with; the signatures need no
// randomness that could fail, and the certificates stay small enough for a handshake's first packets.
//
// It refuses keys that others can read, certificates with any other identity than exactly one of the two above, TLS below
// 1.3, and resumed sessions, which would skip the look at what was revoked. What it does not do: it keeps no table of runners,
// tokens or certificates (the store does, behind enroll.Store and the hook of ServerTLS), and it decides nothing about
// authority over jobs. A certificate says who speaks, not what it may do (09§18).
//
// It starts no goroutine. KeepFresh blocks in the one of its caller. Private keys, tokens and CAs print as a placeholder.
package trust
