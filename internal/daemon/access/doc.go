// Package access says who asks the daemon over HTTP, and with which role.
//
//	fy_token_… ──▶ Enter ──▶ Who: name, role, trust of the runs
//	                 └── context that ends when the token expires or is revoked
//
// An administrator comes with the token of the daemon's folder, or by the socket in it, whose file's permissions have let him
// through. Everybody else shows an access token: it is made here with a role and, if its maker wishes, an end, shown once, and
// kept as a hash. The trust class of a run follows from the token that it is submitted with, and from nothing that the request
// or a repository says.
//
// What is refused is refused with the reason: nothing was shown, it was not copied whole, it is none of this daemon, it has
// expired, or it was revoked; the last two only to whoever has the whole token. Secrets are compared by their hashes, in a time
// that does not depend on them. No error and no log line holds anything of what was shown.
//
// It does not know what a route asks for: package httpapi compares roles. It starts no goroutine. All methods may be called from
// several goroutines at once.
package access
