package protocoltest

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
)

func leaseOffer() []Sample {
	inline := func(n int) agentv1.SpecV1 {
		spec := filled(n, 's')
		return agentv1.SpecV1{Inline: &spec}
	}
	ref, huge := someRef, protocol.RefV1{Digest: mostD, Bytes: agentv1.MaxSpecBytes}
	list := three(
		&agentv1.LeaseOfferV1{Context: leastContext, Spec: inline(1)},
		&agentv1.LeaseOfferV1{Context: someContext, Spec: inline(64)},
		&agentv1.LeaseOfferV1{Context: mostContext, Spec: inline(agentv1.MaxInlineSpec)},
		"a small specification inline; its bytes are a stand-in",
	)
	return append(list,
		Sample{"by-reference", "a specification too large to travel inline", &agentv1.LeaseOfferV1{
			Context: someContext, Spec: agentv1.SpecV1{Ref: &ref},
		}},
		Sample{"by-largest-reference", "the largest specification there may be", &agentv1.LeaseOfferV1{
			Context: mostContext, Spec: agentv1.SpecV1{Ref: &huge},
		}},
	)
}

func leaseAccept() []Sample {
	return three(
		&agentv1.LeaseAcceptV1{Context: leastContext, Nonce: 1},
		&agentv1.LeaseAcceptV1{Context: someContext, Nonce: 9},
		&agentv1.LeaseAcceptV1{Context: mostContext, Nonce: most64},
		"the ninth request for time of a process",
	)
}

func leaseReject() []Sample {
	return three(
		&agentv1.LeaseRejectV1{Context: leastContext, Reason: 1},
		&agentv1.LeaseRejectV1{Context: someContext, Reason: 3},
		&agentv1.LeaseRejectV1{Context: mostContext, Reason: 10},
		"no slot is free",
	)
}

func leaseAcceptAck() []Sample {
	grant := func(ttl uint64, cancel agentv1.CancelReasonV1) agentv1.AcceptAnswerV1 {
		return agentv1.AcceptAnswerV1{Granted: &agentv1.GrantV1{HardTTL: ttl, Cancel: cancel}}
	}
	list := three(
		&agentv1.LeaseAcceptAckV1{Lease: least, Nonce: 1, Answer: grant(1, 0)},
		&agentv1.LeaseAcceptAckV1{Lease: raw(0x22), Nonce: 9, Answer: grant(2*minute, 0)},
		&agentv1.LeaseAcceptAckV1{Lease: most, Nonce: most64, Answer: grant(longest, 3)},
		"two minutes, counted from before the request went out",
	)
	return append(list, Sample{"refused", "the job was cancelled meanwhile", &agentv1.LeaseAcceptAckV1{
		Lease: raw(0x22), Nonce: 9, Answer: agentv1.AcceptAnswerV1{Refused: &agentv1.RefusalV1{Reason: 2}},
	}})
}

func cancel() []Sample {
	return three(
		&agentv1.CancelV1{Attempt: least, Lease: least, Reason: 1},
		&agentv1.CancelV1{Attempt: raw(0x21), Lease: raw(0x22), Reason: 1},
		&agentv1.CancelV1{Attempt: most, Lease: most, Reason: 3},
		"a user's cancel",
	)
}

func cancelAck() []Sample {
	return three(
		&agentv1.CancelAckV1{Attempt: least, Lease: least},
		&agentv1.CancelAckV1{Attempt: raw(0x21), Lease: raw(0x22)},
		&agentv1.CancelAckV1{Attempt: most, Lease: most},
		"it arrived",
	)
}

func phase() []Sample {
	return three(
		&agentv1.PhaseChangeV1{Context: leastContext, Seq: 1},
		&agentv1.PhaseChangeV1{Context: someContext, Seq: 2, Phase: 4},
		&agentv1.PhaseChangeV1{Context: mostContext, Seq: most64, Phase: 11},
		"the workload runs",
	)
}

func phaseAck() []Sample {
	return three(
		&agentv1.PhaseAckV1{Attempt: least, Seq: 1},
		&agentv1.PhaseAckV1{Attempt: raw(0x21), Seq: 2},
		&agentv1.PhaseAckV1{Attempt: most, Seq: most64},
		"acknowledges two events",
	)
}

// sealed adds the hash over the contents, which only the domain can make.
func sealed(w *agentv1.CompletionV1) *agentv1.CompletionV1 {
	m := forge.Completion{
		Context: w.Context.Domain(), Message: forge.MakeID[forge.MessageID](w.Message), CancelSeen: w.CancelSeen,
		Capture: forge.Class(w.Capture), Log: w.Log.Domain(),
		Result: forge.Result{
			Class: forge.Class(w.Result.Class), ExitCode: w.Result.ExitCode, Signal: w.Result.Signal, Limit: w.Result.Limit,
			Peak: w.Result.Peak, Duration: protocol.Duration(w.Result.Duration),
		},
	}
	for _, s := range w.Result.Steps {
		m.Result.Steps = append(m.Result.Steps, forge.StepResult{
			Index: s.Index, Class: forge.Class(s.Class), ExitCode: s.ExitCode, Signal: s.Signal,
			Start: forge.WallTime(s.Start), Duration: protocol.Duration(s.Duration),
		})
	}
	for _, o := range w.Outputs {
		m.Outputs = append(m.Outputs, forge.OutputRef{Output: o.Output, Tree: o.Tree, Ref: o.Ref.Domain()})
	}
	w.Hash = m.ResultHash()
	return w
}

func completion() []Sample {
	seal := protocol.LogSealV1{Last: 380, Bytes: 52_133, Hash: otherD}
	list := three(
		sealed(&agentv1.CompletionV1{Context: leastContext, Message: least, Result: agentv1.ResultV1{Class: 1}, Capture: 1}),
		sealed(&agentv1.CompletionV1{
			Context: someContext, Message: raw(0x50), Capture: 1, Log: seal,
			Result: agentv1.ResultV1{Class: 1, Duration: 3 * minute, Steps: []agentv1.StepResultV1{
				{Index: 0, Class: 1, Start: someTime, Duration: minute}, {Index: 1, Class: 1, Start: someTime + 60_000, Duration: 2 * minute},
			}},
			Outputs: []agentv1.OutputV1{{Output: 0, Tree: true, Ref: someRef}},
		}),
		sealed(&agentv1.CompletionV1{
			Context: mostContext, Message: most, CancelSeen: true, Capture: 19,
			Result: agentv1.ResultV1{
				Class: 19, ExitCode: 255, Signal: 255, Limit: most64, Peak: most64, Duration: longest,
				Steps: times(forge.MaxStepResults, agentv1.StepResultV1{
					Index: 1<<16 - 1, Class: 19, ExitCode: 255, Signal: 255, Start: protocol.MaxWall, Duration: longest,
				}),
			},
			Outputs: times(forge.MaxOutputRefs, agentv1.OutputV1{Output: 1<<16 - 1, Tree: true, Ref: mostRef}),
			Log:     protocol.LogSealV1{Last: most64, Bytes: most64, Hash: mostD},
		}),
		"two steps succeeded and left one folder",
	)
	return append(list, Sample{"failed", "a step ended with code 2", sealed(&agentv1.CompletionV1{
		Context: someContext, Message: raw(0x50), Capture: 1, Log: seal,
		Result: agentv1.ResultV1{Class: 2, ExitCode: 2, Duration: minute, Steps: []agentv1.StepResultV1{
			{Index: 0, Class: 2, ExitCode: 2, Start: someTime, Duration: minute},
		}},
	})})
}

func completionAck() []Sample {
	return three(
		&agentv1.CompletionAckV1{Attempt: least, Message: least, Answer: 1},
		&agentv1.CompletionAckV1{Attempt: raw(0x21), Message: raw(0x50), Answer: 2},
		&agentv1.CompletionAckV1{Attempt: most, Message: most, Answer: 4},
		"it had been accepted before",
	)
}
