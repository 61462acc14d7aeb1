package workspace

// MaxWaiting is the bound of the background.
const MaxWaiting = maxWaiting

// Hold keeps the background from removing anything until release.
func (r *Root) Hold() (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removing = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.removing = len(r.queue) > 0; r.removing {
			r.removes.Go(r.removeAll)
		}
	}
}

// Stop ends removals where they are, as a Close does that has waited long enough.
func (r *Root) Stop() { close(r.stop) }
