// Package enroll is how a runner gets its certificate and the next ones, both ends of it.
//
//	Enroll    ALPN forgeyard-enroll/1: Hello, Enroll{token, request} -> EnrollAccepted{runner, certificate}
//	Recover   the same road without a token: the request is signed with a key that the daemon knows
//	Renew     a registered connection: RenewCertificate{request} -> CertificateIssued{certificate}
//
// Each may be asked again: an answer that was lost costs nothing, since everything hangs on the public key. The private
// key is made on the agent and never leaves it.
//
// It refuses a token a second time for another key, a request whose signature does not prove its key, a key that belongs to
// another runner, and a runner that is revoked or disabled. It keeps no state of its own: the tables stand behind Store.
//
// Serve starts one goroutine for each connection, at most Config.Connections at once, and waits for all of them before it
// returns. Everything else blocks in the goroutine of its caller.
package enroll
