package view

// The defences of this package, by the names that Switches knows them by.
const (
	DefenceMaskedProc    = "masked-proc"    // parts of /proc are covered
	DefenceReadOnlyProc  = "read-only-proc" // settings in /proc are read-only
	DefenceHiddenProc    = "hidden-proc"    // processes of other ids are not listed
	DefenceReadOnlyRoot  = "read-only-root" // the root is sealed
	DefenceReadOnlyBinds = "read-only-binds"
	DefenceNoSetUID      = "nosuid"       // no set-user-id bits and file capabilities on any mount but /proc and /dev
	DefenceNoDevices     = "nodev"        // no devices on any mount but those of /dev
	DefenceHide          = "hidden-paths" // what Options.Hide names is covered
	DefenceMinimalRoot   = "minimal-root" // without it the host's whole root is shown at /host
	DefenceOwnProc       = "own-proc"     // without it the host's /proc is shown at /host-proc besides

	// Of what an attempt's folder is made of; package launch holds them.
	DefenceReadOnlyTrees = "read-only-trees" // inputs that a job may only read are mounted so
	DefenceOwnLayers     = "own-layers"      // a job writes over an input into a layer of its own; without it, into the input
	DefenceCoveredLayers = "covered-layers"  // what holds the layers is covered
)

// Defences lists them.
func Defences() []string {
	return []string{
		DefenceMaskedProc, DefenceReadOnlyProc, DefenceHiddenProc, DefenceReadOnlyRoot, DefenceReadOnlyBinds, DefenceNoSetUID,
		DefenceNoDevices, DefenceHide, DefenceMinimalRoot, DefenceOwnProc, DefenceReadOnlyTrees, DefenceOwnLayers,
		DefenceCoveredLayers,
	}
}
