package native

// Flatten makes the machine one that cannot put layers over folders.
func Flatten(e *Executor) { e.flat.Store(true) }
