package workspace

import "github.com/forgeyard/forgeyard/internal/forge"

// RemoveSlowly removes a workspace as if the quick way had failed, which for root it hardly does.
func (r *Root) RemoveSlowly(attempt forge.AttemptID) error { return r.removeSlowly(attempt.String()) }
