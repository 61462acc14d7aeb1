// Package enroll is how a runner gets its certificate and the next ones, both ends of it.
//
//	Enroll    ALPN forgeyard-enroll/1: Hello, Enroll{token, request} -> EnrollAccepted{runner, certificate}
//	Recover   the same road without a token: the request is signed with a key that the daemon knows
//	renewal   a registered connection: RenewCertificate{request} -> CertificateIssued{certificate}
//
// On the agent that is Enroll, Recover, and NewRenewal with Renewed. On the daemon Desk decides, and Counter serves the
// enrolment's road. Each may be asked again: an answer that was lost costs nothing, since everything hangs on the public
// key. The private key is made on the agent and never leaves it.
//
// It refuses a token a second time for another key, a request whose signature does not prove its key, a key that belongs
// to another runner, and a runner that is revoked or disabled. The tables stand behind Store.
//
// It starts no goroutine: everything blocks in that of its caller.
package enroll
