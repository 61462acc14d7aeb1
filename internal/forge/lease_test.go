package forge_test

import (
	"errors"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

const day = 24 * time.Hour

func TestLeasePolicyHoldsAtItsBoundsAndNotBeyond(t *testing.T) {
	for _, test := range []struct {
		name      string
		good, bad []forge.LeasePolicy
	}{
		{
			"ttl",
			[]forge.LeasePolicy{scaled(func(p *forge.LeasePolicy) { p.TTL = forge.MinHardTTL }), scaled(func(p *forge.LeasePolicy) { p.TTL = day })},
			[]forge.LeasePolicy{scaled(func(p *forge.LeasePolicy) { p.TTL = forge.MinHardTTL - 1 }), scaled(func(p *forge.LeasePolicy) { p.TTL = day + 1 })},
		},
		{
			"grace",
			[]forge.LeasePolicy{scaled(func(p *forge.LeasePolicy) { p.Grace = 0 }), scaled(func(p *forge.LeasePolicy) { p.Grace = 7 * day })},
			[]forge.LeasePolicy{scaled(func(p *forge.LeasePolicy) { p.Grace = -1 }), scaled(func(p *forge.LeasePolicy) { p.Grace = 7*day + 1 })},
		},
		{
			"renew",
			[]forge.LeasePolicy{scaled(func(p *forge.LeasePolicy) { p.Renew = 1 }), scaled(func(p *forge.LeasePolicy) { p.Renew = p.TTL / 4 })},
			[]forge.LeasePolicy{scaled(func(p *forge.LeasePolicy) { p.Renew = 0 }), scaled(func(p *forge.LeasePolicy) { p.Renew = p.TTL/4 + 1 })},
		},
		{
			"margin",
			[]forge.LeasePolicy{scaled(func(p *forge.LeasePolicy) { p.Margin = 2 * time.Second })},
			[]forge.LeasePolicy{scaled(func(p *forge.LeasePolicy) { p.Margin = 2*time.Second - 1 })},
		},
		{
			"kill lead and soft grace",
			[]forge.LeasePolicy{
				scaled(func(p *forge.LeasePolicy) { p.KillLead = p.TTL / 2 }),
				scaled(func(p *forge.LeasePolicy) { p.SoftGrace = p.KillLead - 1 }),
				scaled(func(p *forge.LeasePolicy) { p.SoftGrace = 1 }),
			},
			[]forge.LeasePolicy{
				scaled(func(p *forge.LeasePolicy) { p.KillLead = p.TTL/2 + 1 }),
				scaled(func(p *forge.LeasePolicy) { p.SoftGrace = p.KillLead }),
				scaled(func(p *forge.LeasePolicy) { p.SoftGrace = 0 }),
			},
		},
		{
			"offer ttl",
			[]forge.LeasePolicy{scaled(func(p *forge.LeasePolicy) { p.OfferTTL = 1 }), scaled(func(p *forge.LeasePolicy) { p.OfferTTL = time.Hour })},
			[]forge.LeasePolicy{scaled(func(p *forge.LeasePolicy) { p.OfferTTL = 0 }), scaled(func(p *forge.LeasePolicy) { p.OfferTTL = time.Hour + 1 })},
		},
		{
			"request",
			[]forge.LeasePolicy{scaled(func(p *forge.LeasePolicy) { p.Request = 1 }), scaled(func(p *forge.LeasePolicy) { p.Request = time.Hour })},
			[]forge.LeasePolicy{scaled(func(p *forge.LeasePolicy) { p.Request = 0 }), scaled(func(p *forge.LeasePolicy) { p.Request = time.Hour + 1 })},
		},
	} {
		for i, p := range test.good {
			if err := p.Validate(); err != nil {
				t.Errorf("%s, good policy %d: %v", test.name, i, err)
			}
		}
		for i, p := range test.bad {
			if err := p.Validate(); !errors.Is(err, forge.ErrInvalid) {
				t.Errorf("%s, bad policy %d: %v", test.name, i, err)
			}
		}
	}
	if err := forge.DefaultLeasePolicy().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
}

// scaled is a policy at the shortest time scale, changed.
func scaled(change func(*forge.LeasePolicy)) forge.LeasePolicy {
	p := forge.LeasePolicy{
		TTL: 6 * time.Second, Grace: 6 * time.Second, Renew: 1500 * time.Millisecond, Margin: 2 * time.Second,
		KillLead: 3 * time.Second, SoftGrace: time.Second, OfferTTL: time.Second, Request: time.Second,
	}
	change(&p)
	return p
}

func TestHardTTLContainsTheConnectivityPolicyOnce(t *testing.T) {
	p := forge.DefaultLeasePolicy()
	for _, test := range []struct {
		mode        forge.Connectivity
		extra, want time.Duration
	}{
		{forge.Continuous, 0, 60 * time.Second},
		{forge.Continuous, time.Hour, 60 * time.Second},
		{forge.GracePeriod, 0, 60 * time.Second},
		{forge.GracePeriod, 60 * time.Second, 120 * time.Second},
		{forge.OfflineAuthorized, time.Hour, time.Hour},
		{forge.OfflineAuthorized, time.Second, 60 * time.Second}, // never less than a continuous one
		{0, time.Hour, 60 * time.Second},
	} {
		if got := p.HardTTL(test.mode, test.extra); got != test.want {
			t.Errorf("%v + %v: %v, want %v", test.mode, test.extra, got, test.want)
		}
	}
}

func TestADaemonWatchesLongerThanAnyHonestClockCanDiffer(t *testing.T) {
	p := forge.DefaultLeasePolicy()
	for ttl, want := range map[time.Duration]time.Duration{
		6 * time.Second:   8 * time.Second,   // the margin
		100 * time.Second: 102 * time.Second, // both are the same
		200 * time.Second: 204 * time.Second, // two per cent
	} {
		if got := p.Watch(ttl); got != want {
			t.Errorf("Watch(%v) = %v, want %v", ttl, got, want)
		}
	}
}

func TestAttemptContextNamesWhatIsMissing(t *testing.T) {
	if err := goodContext().Validate(); err != nil {
		t.Error(err)
	}
	if err := (forge.AttemptContext{}).Validate(); !errors.Is(err, forge.ErrInvalid) {
		t.Error(err)
	}
}

func TestReasonsHaveNamesAndUnknownOnesShowTheirNumber(t *testing.T) {
	for got, want := range map[string]string{
		forge.RejectOther.String():            "Other",
		forge.RejectPreparation.String():      "InternalPreparationFailure",
		forge.RejectAlreadyTaken.String():     "AlreadyTaken",
		forge.RejectReason(11).String():       "invalid(11)",
		forge.RejectReason(0).String():        "invalid(0)",
		forge.RefusedSuperseded.String():      "Superseded",
		forge.RefuseReason(5).String():        "invalid(5)",
		forge.CancelNone.String():             "None",
		forge.CancelDisabled.String():         "RunnerDisabled",
		forge.CancelReason(4).String():        "invalid(4)",
		forge.CloseSessionSuperseded.String(): "SESSION_SUPERSEDED",
		forge.CloseReason(26).String():        "invalid(26)",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestACloseForAReasonThatIsNotKnownMeansBackoff(t *testing.T) {
	for r := range forge.CloseReason(30) {
		if retry := r.Retry(); retry < forge.RetryStop || retry > forge.RetryConnection {
			t.Errorf("%v has no retry class", r)
		}
		if !r.Valid() && r.Retry() != forge.RetryBackoff {
			t.Errorf("%v: %d", r, r.Retry())
		}
	}
}
