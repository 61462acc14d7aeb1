//go:build !linux

package workspace

// unlock does nothing here: attributes of that kind are known on Linux only.
func (r *Root) unlock(string) {}
