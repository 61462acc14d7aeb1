package program

import "runtime/debug"

// released is the version of a release, set by the linker: -X github.com/forgeyard/forgeyard/internal/program.released=1.2.3.
var released string

// Version is the version of this program: that of the release, or else what the build knows of its source.
func Version() string {
	if released != "" {
		return released
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "0.0.0-dev+" + s.Value[:12]
		}
	}
	return "0.0.0-dev"
}
