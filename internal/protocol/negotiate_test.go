package protocol_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

func major(major, low, high uint16) protocol.Range {
	return protocol.Range{Major: major, MinMinor: low, MaxMinor: high}
}

func TestNegotiationTakesTheHighestCommonVersion(t *testing.T) {
	for _, test := range []struct {
		server, agent protocol.Ranges
		want          protocol.Version
	}{
		{protocol.Ranges{major(1, 0, 3)}, protocol.Ranges{major(1, 0, 3)}, protocol.Version{Major: 1, Minor: 3}},
		{protocol.Ranges{major(1, 0, 3)}, protocol.Ranges{major(1, 0, 9)}, protocol.Version{Major: 1, Minor: 3}},
		{protocol.Ranges{major(1, 0, 9)}, protocol.Ranges{major(1, 0, 3)}, protocol.Version{Major: 1, Minor: 3}},
		{protocol.Ranges{major(1, 2, 9)}, protocol.Ranges{major(1, 0, 2)}, protocol.Version{Major: 1, Minor: 2}},
		{protocol.Ranges{major(1, 0, 3), major(2, 0, 1)}, protocol.Ranges{major(1, 0, 5), major(2, 0, 0)}, protocol.Version{Major: 2}},
		{protocol.Ranges{major(1, 0, 3), major(2, 4, 5)}, protocol.Ranges{major(1, 0, 5), major(2, 0, 0)}, protocol.Version{Major: 1, Minor: 3}},
		{protocol.Ranges{major(2, 0, 0), major(3, 0, 0)}, protocol.Ranges{major(1, 0, 5), major(2, 0, 7)}, protocol.Version{Major: 2}},
	} {
		got, err := protocol.Negotiate(protocol.Terms{Versions: test.server}, protocol.Terms{Versions: test.agent})
		if err != nil || got.Version != test.want {
			t.Errorf("server %v, agent %v: %v, %v; want %v", test.server, test.agent, got.Version, err, test.want)
		}
	}
}

func TestNoCommonVersionIsRefusedInWordsForAnOperator(t *testing.T) {
	for _, test := range []struct {
		server, agent protocol.Ranges
		reason        forge.CloseReason
		text          string
	}{
		{
			protocol.Ranges{major(3, 0, 2), major(4, 0, 0)},
			protocol.Ranges{major(1, 0, 9), major(2, 0, 3)},
			forge.CloseVersionMismatch, "server supports 3-4, agent supports 1-2",
		},
		{protocol.Ranges{major(3, 0, 2)}, protocol.Ranges{major(4, 0, 0)}, forge.CloseVersionMismatch, "server supports 3, agent supports 4"},
		{
			protocol.Ranges{major(1, 0, 0), major(3, 0, 0), major(4, 0, 0)},
			protocol.Ranges{major(2, 0, 0)},
			forge.CloseVersionMismatch, "server supports 1,3-4, agent supports 2",
		},
		{protocol.Ranges{major(1, 2, 5)}, protocol.Ranges{major(1, 0, 1)}, forge.CloseTooOld, "server supports 1.2-1.5, agent supports 1.0-1.1"},
		{protocol.Ranges{major(1, 2, 5)}, protocol.Ranges{major(1, 7, 7)}, forge.CloseTooNew, "server supports 1.2-1.5, agent supports 1.7"},
	} {
		_, err := protocol.Negotiate(protocol.Terms{Versions: test.server}, protocol.Terms{Versions: test.agent})
		var mismatch *protocol.Mismatch
		if !errors.As(err, &mismatch) {
			t.Errorf("server %v, agent %v: %v, want a mismatch", test.server, test.agent, err)
			continue
		}
		if mismatch.Reason() != test.reason || err.Error() != test.text {
			t.Errorf("%v, %q; want %v, %q", mismatch.Reason(), err, test.reason, test.text)
		}
	}
}

func TestTheRefusalReachesTheAgentWithTheServersRange(t *testing.T) {
	own := protocol.Terms{Versions: protocol.Ranges{major(3, 0, 2), major(4, 0, 0)}}
	agent := protocol.Terms{Versions: protocol.Ranges{major(1, 0, 0), major(2, 0, 0)}}
	hello := &protocol.HelloV1{Role: protocol.RoleAgent, Versions: agent.Versions}
	ack, mismatch := protocol.NewHelloAck(own, hello, "daemon", 0)
	if mismatch == nil || mismatch.Reason() != forge.CloseVersionMismatch {
		t.Fatalf("the daemon's reason is %v", mismatch)
	}
	if err := ack.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, err := ack.Accept(agent); err == nil || err.Error() != "server supports 3-4, agent supports 1-2" {
		t.Errorf("the agent says %v", err)
	}
}

func TestOnlySharedFeaturesAreEnabledAndUnknownOnesAreNoFault(t *testing.T) {
	versions := protocol.Ranges{major(1, 0, 0)}
	server := protocol.Terms{Versions: versions, Features: protocol.FeatureSet{1, 2, 4, 900}}
	agent := protocol.Terms{Versions: versions, Features: protocol.FeatureSet{2, 3, 4, 800}}
	got, err := protocol.Negotiate(server, agent)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(protocol.FeatureSet{2, 4}, got.Features); diff != "" {
		t.Error(diff)
	}
}

func TestADaemonCannotChooseWhatWasNotOffered(t *testing.T) {
	own := protocol.Terms{Versions: protocol.Ranges{major(1, 2, 3)}, Features: protocol.FeatureSet{1}}
	for name, ack := range map[string]*protocol.HelloAckV1{
		"a lower minor":  {Selected: &protocol.SelectionV1{Version: protocol.Version{Major: 1, Minor: 1}}},
		"another major":  {Selected: &protocol.SelectionV1{Version: protocol.Version{Major: 2, Minor: 2}}},
		"a feature":      {Selected: &protocol.SelectionV1{Version: protocol.Version{Major: 1, Minor: 2}, Features: protocol.FeatureSet{2}}},
		"not in its own": {Selected: &protocol.SelectionV1{Version: protocol.Version{Major: 1, Minor: 3}}},
	} {
		ack.Versions = protocol.Ranges{major(1, 0, 2), major(2, 0, 9)}
		var v *protocol.Violation
		if _, err := ack.Accept(own); !errors.As(err, &v) || v.Reason() != forge.CloseProtocol {
			t.Errorf("%s: %v, want a violation", name, err)
		}
	}
	good := &protocol.HelloAckV1{
		Versions: protocol.Ranges{major(1, 0, 2)},
		Selected: &protocol.SelectionV1{Version: protocol.Version{Major: 1, Minor: 2}, Features: protocol.FeatureSet{1}},
	}
	if got, err := good.Accept(own); err != nil || got.Version != (protocol.Version{Major: 1, Minor: 2}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestThisBuildAgreesWithItself(t *testing.T) {
	terms := protocol.OwnTerms()
	if err := terms.Validate(); err != nil {
		t.Fatal(err)
	}
	got, err := protocol.Negotiate(terms, terms)
	if err != nil || got.Version != protocol.Current || len(got.Features) != len(terms.Features) {
		t.Errorf("%v, %v", got, err)
	}
	if terms.Versions.Highest() != protocol.Current || !terms.Versions.Contains(protocol.Current) {
		t.Errorf("%v does not end with %v", terms.Versions, protocol.Current)
	}
}

func TestRangesHaveOneSpelling(t *testing.T) {
	many := make(protocol.Ranges, protocol.MaxRanges+1)
	for i := range many {
		many[i].Major = uint16(i)
	}
	for _, bad := range []protocol.Ranges{nil, {major(1, 2, 1)}, {major(2, 0, 0), major(1, 0, 0)}, {major(1, 0, 0), major(1, 1, 1)}, many} {
		if err := bad.Validate(); !errors.Is(err, protocol.ErrInvalid) {
			t.Errorf("%v: %v, want ErrInvalid", bad, err)
		}
	}
	if err := many[1:].Validate(); err != nil {
		t.Error(err)
	}
}
