package forge

// Capabilities is a runner's snapshot of what it can do (07§18).
type Capabilities struct {
	SchemaVersion uint16
}

// ResourceSummary is what a heartbeat says of a runner's load.
type ResourceSummary struct {
	Pressure ResourcePressure
}

// ResourcePressure says what a runner is short of (07§24).
type ResourcePressure uint8
