package protocoltest

import (
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
)

// snapshot returns capabilities in wire form with their digest, by way of the domain, which alone can make the digest.
func snapshot(c forge.Capabilities) (agentv1.CapabilitiesV1, digest.Digest) {
	w := agentv1.NewCapabilityUpdate(&forge.CapabilityUpdate{Capabilities: c})
	return w.Capabilities, c.Digest()
}

func smallCapabilities() forge.Capabilities {
	return forge.Capabilities{SchemaVersion: 1, Platform: forge.Platform{OS: "a", Arch: "a"}}
}

func usualCapabilities() forge.Capabilities {
	return forge.Capabilities{
		SchemaVersion: 1,
		Platform:      forge.Platform{OS: "linux", Arch: "amd64", Version: "Debian GNU/Linux 13"},
		Resources:     forge.Resources{CPU: 16_000, Memory: 64 * forge.GiB, Disk: 500 * forge.GiB, Slots: 8},
		Toolchains: []forge.Toolchain{
			{ID: "go", Version: "1.26.0", Source: forge.ToolchainManaged, Verified: true, Warm: true},
			{ID: "node", Version: "24.1.0", Source: forge.ToolchainHost},
		},
		Sandboxes: []forge.Sandbox{{Kind: forge.SandboxNative, Levels: []string{"cgroup2", "landlock", "seccomp", "userns"}}},
		Labels:    []string{"site=basel"}, Features: []string{forge.FeatureToolchains},
	}
}

func largeCapabilities() forge.Capabilities {
	name := func(i int) string { return numbered(forge.MaxName, i) }
	levels := each(forge.MaxSandboxLevels, name)
	return forge.Capabilities{
		SchemaVersion: 1,
		Platform:      forge.Platform{OS: text(forge.MaxName), Arch: text(forge.MaxName), Version: text(forge.MaxTitle)},
		Resources:     forge.Resources{CPU: forge.MaxCPU, Memory: forge.MaxMemory, Disk: forge.MaxDisk, Slots: forge.MaxSlots},
		Toolchains: each(forge.MaxToolchains, func(i int) forge.Toolchain {
			return forge.Toolchain{ID: name(i), Version: text(forge.MaxName), Source: forge.ToolchainManaged, Verified: true, Warm: true}
		}),
		Sandboxes: []forge.Sandbox{
			{Kind: forge.SandboxNative, Levels: levels}, {Kind: forge.SandboxOCI, Levels: levels}, {Kind: forge.SandboxProcess, Levels: levels},
		},
		Devices: each(forge.MaxDevices, func(i int) forge.DeviceCount {
			return forge.DeviceCount{Kind: name(i), Count: forge.MaxDeviceCount}
		}),
		Labels: each(forge.MaxLabels, name), Features: each(forge.MaxFeatures, name),
	}
}

func register() []Sample {
	small, smallD := snapshot(smallCapabilities())
	usual, usualD := snapshot(usualCapabilities())
	large, largeD := snapshot(largeCapabilities())
	return three(
		&agentv1.RegisterV1{
			Peer: leastPeer, StateFolder: least, Boot: least, StartCounter: 1, TransportSeq: 1, Digest: smallD, Capabilities: small,
		},
		&agentv1.RegisterV1{
			Peer: somePeer, StateFolder: raw(0x13), Boot: raw(0x14), StartCounter: 12, TransportSeq: 3, Version: "0.1.0",
			Digest: usualD, Capabilities: usual,
		},
		&agentv1.RegisterV1{
			Peer: mostPeer, StateFolder: most, Boot: most, StartCounter: most64, TransportSeq: most64,
			Version: text(agentv1.MaxVersion), Digest: largeD, Capabilities: large,
		},
		"the third connection of a process on a build machine",
	)
}

func capabilityUpdate() []Sample {
	small, smallD := snapshot(smallCapabilities())
	usual, usualD := snapshot(usualCapabilities())
	large, largeD := snapshot(largeCapabilities())
	return three(
		&agentv1.CapabilityUpdateV1{Peer: leastPeer, Digest: smallD, Capabilities: small},
		&agentv1.CapabilityUpdateV1{Peer: somePeer, Digest: usualD, Capabilities: usual},
		&agentv1.CapabilityUpdateV1{Peer: mostPeer, Digest: largeD, Capabilities: large},
		"a build machine",
	)
}

func resync() []Sample {
	return three(
		&agentv1.ResyncV1{Peer: leastPeer, Nonce: 1},
		&agentv1.ResyncV1{Peer: somePeer, Nonce: 7, Digest: someD, Attempts: []agentv1.ResyncItemV1{
			{Work: someWork, Phase: 4, EventSeq: 2, LogNext: 381},
			{Work: protocol.WorkV1{Job: raw(0x30), Attempt: raw(0x31), Lease: raw(0x32), Spec: otherD}, Phase: 1, LogNext: 1},
		}},
		&agentv1.ResyncV1{
			Peer: mostPeer, Nonce: most64, Digest: mostD,
			Attempts: times(forge.MaxAttemptsPerAgent, agentv1.ResyncItemV1{
				Work: mostWork, Phase: 11, EventSeq: most64, LogNext: most64,
			}),
		},
		"one attempt runs, and of another the acceptance was never answered",
	)
}

func someVerdicts() []agentv1.LeaseVerdictV1 {
	return []agentv1.LeaseVerdictV1{
		{Lease: raw(0x22), Verdict: 1, HardTTL: 2 * minute},
		{Lease: raw(0x32), Verdict: 1, HardTTL: 2 * minute, Cancel: 1},
		{Lease: raw(0x42), Verdict: 2, Cancel: 2},
		{Lease: raw(0x52), Verdict: 3},
	}
}

func mostVerdicts() []agentv1.LeaseVerdictV1 {
	return times(forge.MaxAttemptsPerAgent, agentv1.LeaseVerdictV1{Lease: most, Verdict: 1, HardTTL: longest, Cancel: 3})
}

func resyncReply() []Sample {
	return three(
		&agentv1.ResyncReplyV1{Nonce: 1},
		&agentv1.ResyncReplyV1{Nonce: 7, Verdicts: someVerdicts()},
		&agentv1.ResyncReplyV1{Nonce: most64, Verdicts: mostVerdicts()},
		"one of each verdict",
	)
}

func recoverAttempts() []Sample {
	return three(
		&agentv1.RecoverAttemptsV1{Peer: leastPeer},
		&agentv1.RecoverAttemptsV1{Peer: somePeer, Previous: []agentv1.RecoveredV1{
			{Session: raw(0x15), Work: someWork, Killed: true},
			{
				Session: raw(0x15), Work: protocol.WorkV1{Job: raw(0x30), Attempt: raw(0x31), Lease: raw(0x32), Spec: otherD},
				Killed: true, Completion: &agentv1.PendingV1{Message: raw(0x33), Hash: someD},
			},
		}},
		&agentv1.RecoverAttemptsV1{
			Peer: mostPeer,
			Previous: times(forge.MaxRecovered, agentv1.RecoveredV1{
				Session: most, Work: mostWork, Killed: true, Completion: &agentv1.PendingV1{Message: most, Hash: mostD},
			}),
		},
		"a process found two attempts of an earlier one, of which one had ended",
	)
}

func recoveryDecisions() []Sample {
	return three(
		&agentv1.RecoveryDecisionsV1{},
		&agentv1.RecoveryDecisionsV1{Decisions: []agentv1.RecoveryDecisionV1{
			{Attempt: raw(0x21), Verdict: 2}, {Attempt: raw(0x31), Verdict: 1}, {Attempt: raw(0x41), Verdict: 3},
		}},
		&agentv1.RecoveryDecisionsV1{
			Decisions: times(forge.MaxRecovered, agentv1.RecoveryDecisionV1{Attempt: most, Verdict: 3}),
		},
		"one of each verdict",
	)
}

func heartbeat() []Sample {
	total := agentv1.ResourcesV1{MilliCPU: 16_000, Memory: 64 << 30, Disk: 500 << 30, Slots: 8}
	used := agentv1.ResourcesV1{MilliCPU: 4_000, Memory: 8 << 30, Disk: 20 << 30, Slots: 1}
	free := agentv1.ResourcesV1{MilliCPU: 12_000, Memory: 56 << 30, Disk: 480 << 30, Slots: 7}
	all := agentv1.ResourcesV1{
		MilliCPU: uint64(forge.MaxCPU), Memory: uint64(forge.MaxMemory), Disk: uint64(forge.MaxDisk), Slots: forge.MaxSlots,
	}
	return three(
		&agentv1.HeartbeatV1{Peer: leastPeer, Nonce: 1},
		&agentv1.HeartbeatV1{
			Peer: somePeer, Nonce: 8, State: 4, Digest: someD,
			Attempts:  []agentv1.HeartbeatItemV1{{Attempt: raw(0x21), Lease: raw(0x22), Phase: 4}},
			Resources: &agentv1.ResourceSummaryV1{Total: total, Active: used, Free: free, Pressure: 1},
		},
		&agentv1.HeartbeatV1{
			Peer: mostPeer, Nonce: most64, State: 8, Digest: mostD,
			Attempts:  times(forge.MaxAttemptsPerAgent, agentv1.HeartbeatItemV1{Attempt: most, Lease: most, Phase: 11}),
			Resources: &agentv1.ResourceSummaryV1{Total: all, Reserved: all, Active: all, Pressure: 6},
		},
		"one attempt runs on an eighth of the machine",
	)
}

func heartbeatAck() []Sample {
	return three(
		&agentv1.HeartbeatAckV1{Nonce: 1},
		&agentv1.HeartbeatAckV1{Nonce: 8, Verdicts: someVerdicts()},
		&agentv1.HeartbeatAckV1{Nonce: most64, Verdicts: mostVerdicts()},
		"one of each verdict",
	)
}

func healthReport() []Sample {
	worst := each(8, func(i int) agentv1.HealthResultV1 {
		return agentv1.HealthResultV1{Kind: agentv1.HealthCheckV1(i), Status: 3, Detail: text(forge.MaxTitle)}
	})
	return three(
		&agentv1.HealthReportV1{Peer: leastPeer, Status: 1},
		&agentv1.HealthReportV1{Peer: somePeer, Status: 2, Checks: []agentv1.HealthResultV1{
			{Kind: 1, Status: 2, Detail: "9 % of /var/lib/forgeyard is free"}, {Kind: 3, Status: 1},
		}},
		&agentv1.HealthReportV1{Peer: mostPeer, Status: 3, Checks: worst},
		"a disk fills up",
	)
}

func probeRequest() []Sample {
	return three(
		&agentv1.ProbeRequestV1{},
		&agentv1.ProbeRequestV1{Checks: []agentv1.HealthCheckV1{1, 3}},
		&agentv1.ProbeRequestV1{Checks: times(32, agentv1.HealthCheckV1(8))},
		"disk and sandbox",
	)
}

func drain() []Sample {
	list := three(&agentv1.DrainV1{}, &agentv1.DrainV1{}, &agentv1.DrainV1{CancelActive: true}, "no new lease")
	list[2].About = "stop what runs as well"
	return list
}

func resume() []Sample {
	return three(&agentv1.ResumeV1{}, &agentv1.ResumeV1{}, &agentv1.ResumeV1{}, "there is nothing in it")
}

func refreshCapabilities() []Sample {
	w := &agentv1.RefreshCapabilitiesV1{}
	return three(w, w, w, "there is nothing in it")
}
