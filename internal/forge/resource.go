package forge

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
)

// MilliCPU counts thousandths of a processor core.
type MilliCPU uint64

// Bytes is a size in bytes.
type Bytes uint64

// Units of sizes.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

// The most that one runner or job may claim. Sums of a runner's jobs stay far from overflow.
const (
	MaxCPU    MilliCPU = 4096 * 1000
	MaxMemory          = 256 * TiB
	MaxDisk            = 4096 * TiB
	MaxSlots  uint32   = MaxAttemptsPerAgent // a job takes at least one
)

// Errors of arithmetic with resources.
var (
	ErrOverflow     = errors.New("forge: resources overflow")
	ErrInsufficient = errors.New("forge: resources do not suffice")
)

// Resources is an amount of everything that jobs share: what a job asks for, what a runner has, or what is left.
type Resources struct {
	CPU    MilliCPU
	Memory Bytes
	Disk   Bytes
	Slots  uint32 // jobs at a time
}

// Validate checks the amounts against the bounds of this package. Zero is a valid amount.
func (r Resources) Validate() error {
	var c checker
	c.resources(nil, r, Resources{})
	return c.err()
}

// resources checks that each amount is at least that of least and within the bounds of this package.
func (c *checker) resources(at *where, r, least Resources) {
	number(c, at.in("cpu"), r.CPU, least.CPU, MaxCPU)
	number(c, at.in("memory"), r.Memory, least.Memory, MaxMemory)
	number(c, at.in("disk"), r.Disk, least.Disk, MaxDisk)
	number(c, at.in("slots"), r.Slots, least.Slots, MaxSlots)
}

// Fits reports whether r can be had out of free.
func (r Resources) Fits(free Resources) bool {
	return r.CPU <= free.CPU && r.Memory <= free.Memory && r.Disk <= free.Disk && r.Slots <= free.Slots
}

// Add returns r + o, or ErrOverflow.
func (r Resources) Add(o Resources) (Resources, error) {
	cpu, c1 := bits.Add64(uint64(r.CPU), uint64(o.CPU), 0)
	memory, c2 := bits.Add64(uint64(r.Memory), uint64(o.Memory), 0)
	disk, c3 := bits.Add64(uint64(r.Disk), uint64(o.Disk), 0)
	slots, c4 := bits.Add32(r.Slots, o.Slots, 0)
	if c1|c2|c3|uint64(c4) != 0 {
		return Resources{}, fmt.Errorf("%w: %v + %v", ErrOverflow, r, o)
	}
	return Resources{MilliCPU(cpu), Bytes(memory), Bytes(disk), slots}, nil
}

// Sub returns r − o, or ErrInsufficient where o does not fit r.
func (r Resources) Sub(o Resources) (Resources, error) {
	if !o.Fits(r) {
		return Resources{}, fmt.Errorf("%w: %v − %v", ErrInsufficient, r, o)
	}
	return r.Without(o), nil
}

// Without returns r − o, each amount at least zero.
func (r Resources) Without(o Resources) Resources {
	return Resources{
		CPU: r.CPU - min(r.CPU, o.CPU), Memory: r.Memory - min(r.Memory, o.Memory),
		Disk: r.Disk - min(r.Disk, o.Disk), Slots: r.Slots - min(r.Slots, o.Slots),
	}
}

// Min returns the smaller of each amount.
func (r Resources) Min(o Resources) Resources {
	return Resources{
		CPU: min(r.CPU, o.CPU), Memory: min(r.Memory, o.Memory), Disk: min(r.Disk, o.Disk), Slots: min(r.Slots, o.Slots),
	}
}

func (r Resources) String() string {
	return fmt.Sprintf("%v cpu, %v memory, %v disk, %d slots", r.CPU, r.Memory, r.Disk, r.Slots)
}

// Allocatable is what may still be given to jobs (07§223): all that there is, less what the agent and the administrator
// keep for the host, less what running jobs hold. It never goes below zero, also where a reserve was raised meanwhile.
func Allocatable(physical, agentReserve, adminReserve, active Resources) Resources {
	return physical.Without(agentReserve).Without(adminReserve).Without(active)
}

// String writes cores with at most three decimals.
func (m MilliCPU) String() string { return strconv.FormatFloat(float64(m)/1000, 'f', -1, 64) }

// String writes the size in the largest unit that divides it.
func (b Bytes) String() string {
	for _, u := range [...]struct {
		size Bytes
		name string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if b >= u.size && b%u.size == 0 {
			return strconv.FormatUint(uint64(b/u.size), 10) + " " + u.name
		}
	}
	return strconv.FormatUint(uint64(b), 10) + " B"
}

// ResourcePressure says what a runner is short of (07§24).
type ResourcePressure uint8

// The pressures. Zero is that of a runner which has not said anything.
const (
	PressureNormal   ResourcePressure = 1
	PressureCPU      ResourcePressure = 2
	PressureMemory   ResourcePressure = 3
	PressureDisk     ResourcePressure = 4
	PressureThermal  ResourcePressure = 5
	PressureCritical ResourcePressure = 6
)

var pressureNames = []string{"", "Normal", "Cpu", "Memory", "Disk", "Thermal", "Critical"}

func (p ResourcePressure) String() string { return name(pressureNames, uint8(p)) }

// Valid reports whether p is one of the pressures.
func (p ResourcePressure) Valid() bool { return p >= PressureNormal && p <= PressureCritical }

// Normal reports whether the runner is short of nothing, as far as it has said.
func (p ResourcePressure) Normal() bool { return p <= PressureNormal }

// ResourceSummary is what a heartbeat says of a runner's load (07§23). Free may be less than what the other amounts
// leave: an agent that feels pressure offers less (07§25).
type ResourceSummary struct {
	Total    Resources
	Reserved Resources // kept by the agent for the host
	Active   Resources // held by running attempts
	Free     Resources
	Pressure ResourcePressure
}

// Validate checks the bounds, and that no more is free than the other amounts leave.
func (s ResourceSummary) Validate() error {
	var c checker
	var root *where
	c.resources(root.in("total"), s.Total, Resources{})
	c.resources(root.in("reserved"), s.Reserved, Resources{})
	c.resources(root.in("active"), s.Active, Resources{})
	if most := Allocatable(s.Total, s.Reserved, Resources{}, s.Active); !s.Free.Fits(most) {
		c.add(root.in("free"), "%v is more than the %v that are left", s.Free, most)
	}
	c.known(root.in("pressure"), s.Pressure.Valid(), s.Pressure)
	return c.err()
}
