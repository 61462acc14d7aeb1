package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// LeaseVerdictV1 is what the store says of one lease (09§117).
type LeaseVerdictV1 struct {
	Lease   [16]byte
	Verdict VerdictV1
	HardTTL uint64         // nanoseconds; with Continue what this renewal grants, else 0
	Cancel  CancelReasonV1 // with Cancel why; with Continue if the workload is to stop all the same; never with Stale
}

func newVerdicts(list []forge.LeaseVerdict) []LeaseVerdictV1 {
	var w []LeaseVerdictV1
	for _, v := range list {
		w = append(w, LeaseVerdictV1{
			v.Lease.ULID, VerdictV1(verdicts.Wire(v.Verdict)), protocol.Nanos(v.HardTTL), newCancel(v.Cancel),
		})
	}
	return w
}

func (w *LeaseVerdictV1) validate() error {
	var c protocol.Check
	c.ID("lease", w.Lease)
	verdict, known := verdicts.Domain(uint8(w.Verdict))
	c.That(known, "verdict", "is not known")
	switch verdict {
	case forge.VerdictContinue:
		c.Duration("hard_ttl", w.HardTTL, 1)
	case forge.VerdictCancel:
		c.That(w.HardTTL == 0, "hard_ttl", "grants time to what is to stop")
		c.That(w.Cancel != 0, "cancel", "is missing")
	case forge.VerdictStale:
		c.That(w.HardTTL == 0 && w.Cancel == 0, "verdict", "is stale and says more")
	}
	return c.Err()
}

func (w *LeaseVerdictV1) domain() forge.LeaseVerdict {
	return forge.LeaseVerdict{
		Lease: forge.MakeID[forge.LeaseID](w.Lease), Verdict: verdicts.Or(uint8(w.Verdict), 0),
		HardTTL: protocol.Duration(w.HardTTL), Cancel: w.Cancel.domain(),
	}
}

// checkVerdicts checks a nonce and the verdicts that it ties to a request.
func checkVerdicts(nonce uint64, list []LeaseVerdictV1) error {
	var c protocol.Check
	c.That(nonce != 0, "nonce", "is missing")
	for i := range list {
		c.Item("verdicts", i, list[i].validate())
	}
	return c.Err()
}

func domainVerdicts(list []LeaseVerdictV1) []forge.LeaseVerdict {
	var m []forge.LeaseVerdict
	for i := range list {
		m = append(m, list[i].domain())
	}
	return m
}
