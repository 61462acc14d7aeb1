// Package daemon is the daemon as one value: its parts opened from a folder, wired, started in order and stopped in the
// reverse one.
//
//	folder   lock state.db logs/ trust/{ca.crt,ca.key,stateless.key} admin.token secret.key http.sock (all its owner's alone)
//
//	start    store ▸ trust ▸ token ▸ logs ▸ control ▸ listener for agents ▸ agents ▸ HTTP ▸ ready
//	stop     HTTP: no new request, streams end ▸ agents: no new connection, GoAway, what is under way, close
//	         ▸ listener ▸ control ▸ logs ▸ store
//
// It decides nothing: what it adds is who is given to whom. It refuses to start on a folder that another daemon has, with
// keys that others can read, or with settings that do not fit together; and it ends with an error, for whoever watches
// over it to start it again, when the store cannot tell the fate of a commit.
//
// Run owns every goroutine, through a program.Stack, and returns when all have ended.
package daemon
