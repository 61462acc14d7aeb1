// Package attack is a set of programs that try to get out of a sandbox, to see what it hides, to outlive it or to starve what
// is around it, each with the defences that stop it.
//
// The table, All, is the only list of them. Tests run each program as a step inside the full sandbox, as root with mapped ids
// and rootless, and want it denied. With the build tag forgeyard_unsafe they run it again in a sandbox without the defences
// that its row names, where it must reach the decoy that was planted for it: so each denial is known to come from those
// defences and not from a program that could do no harm anyway. Where several defences stop a program, each is also tried
// alone.
//
// A program reports one line on its standard output: what denied it, or what it reached. Play refuses to run outside a
// sandbox: it compares its mount namespace with the one that it is told is the host's. Nothing that a program asks of the
// kernel would do lasting harm if it were granted: it writes settings as they are, loads what is no module, and stops at a
// bound of its own. The accomplice alone has goroutines, which answer whoever finds it and end with it.
package attack
