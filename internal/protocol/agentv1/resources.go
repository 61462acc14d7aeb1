package agentv1

import "github.com/forgeyard/forgeyard/internal/forge"

// ResourcesV1 is an amount of everything that jobs share.
type ResourcesV1 struct {
	MilliCPU uint64
	Memory   uint64 // bytes
	Disk     uint64 // bytes
	Slots    uint32
}

func newResources(r forge.Resources) ResourcesV1 {
	return ResourcesV1{MilliCPU: uint64(r.CPU), Memory: uint64(r.Memory), Disk: uint64(r.Disk), Slots: r.Slots}
}

func (w ResourcesV1) domain() forge.Resources {
	return forge.Resources{CPU: forge.MilliCPU(w.MilliCPU), Memory: forge.Bytes(w.Memory), Disk: forge.Bytes(w.Disk), Slots: w.Slots}
}

// ResourceSummaryV1 is what a heartbeat says of a runner's load (07§23).
type ResourceSummaryV1 struct {
	Total    ResourcesV1
	Reserved ResourcesV1
	Active   ResourcesV1
	Free     ResourcesV1
	Pressure PressureV1
}

func newResourceSummary(s forge.ResourceSummary) *ResourceSummaryV1 {
	if s == (forge.ResourceSummary{}) {
		return nil
	}
	return &ResourceSummaryV1{
		Total: newResources(s.Total), Reserved: newResources(s.Reserved), Active: newResources(s.Active),
		Free: newResources(s.Free), Pressure: PressureV1(pressures.Wire(s.Pressure)),
	}
}

func (w *ResourceSummaryV1) domain() forge.ResourceSummary {
	if w == nil {
		return forge.ResourceSummary{}
	}
	s := forge.ResourceSummary{
		Total: w.Total.domain(), Reserved: w.Reserved.domain(), Active: w.Active.domain(), Free: w.Free.domain(),
	}
	if w.Pressure != 0 {
		s.Pressure = pressures.Or(uint8(w.Pressure), forge.PressureCritical)
	}
	return s
}

func (w *ResourceSummaryV1) validate() error {
	if w == nil {
		return nil
	}
	return w.domain().Validate()
}
