package protocoltest

import (
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
)

func hello() []Sample {
	session, all := raw(0x11), most
	return three(
		&protocol.HelloV1{Role: protocol.RoleAgent, Versions: protocol.Ranges{{}}},
		&protocol.HelloV1{
			Role: protocol.RoleAgent, Versions: protocol.Ranges{{Major: 0, MinMinor: 1, MaxMinor: 1}},
			Features: protocol.Features(), Session: &session, Software: "forgeyard-agent 0.1.0 linux/amd64",
		},
		&protocol.HelloV1{
			Role: protocol.RoleInternalWorker, Versions: manyRanges(), Features: manyFeatures(), Session: &all,
			Software: text(protocol.MaxSoftware),
		},
		"an agent that registers again, with every feature of this build",
	)
}

func manyRanges() protocol.Ranges {
	return each(protocol.MaxRanges, func(i int) protocol.Range {
		return protocol.Range{Major: 1<<16 - 9 + uint16(i), MinMinor: 1 << 15, MaxMinor: 1<<16 - 1}
	})
}

func manyFeatures() protocol.FeatureSet {
	return each(protocol.MaxFeatures, func(i int) protocol.Feature { return protocol.Feature(1<<16 - 65 + i) })
}

func helloAck() []Sample {
	own := protocol.Ranges{{Major: 0, MinMinor: 1, MaxMinor: 1}}
	list := three(
		&protocol.HelloAckV1{Versions: protocol.Ranges{{}}},
		&protocol.HelloAckV1{
			Versions: own, Selected: &protocol.SelectionV1{Version: protocol.Version{Minor: 1}, Features: protocol.Features()},
			Software: "forgeyard-daemon 0.1.0", Time: someTime,
		},
		&protocol.HelloAckV1{
			Versions: manyRanges(),
			Selected: &protocol.SelectionV1{Version: manyRanges().Highest(), Features: manyFeatures()},
			Software: text(protocol.MaxSoftware), Time: protocol.MaxWall,
		},
		"version 0.1 and every feature of this build",
	)
	return append(list, Sample{
		"refused", "no version in common: the daemon says what it has",
		&protocol.HelloAckV1{
			Versions: protocol.Ranges{{Major: 3, MaxMinor: 2}, {Major: 4, MaxMinor: 0}}, Software: "forgeyard-daemon 4.0.0", Time: someTime,
		},
	})
}

func goAway() []Sample {
	day := uint64(protocol.MaxGoAwayDelay)
	return three(
		&protocol.GoAwayV1{},
		&protocol.GoAwayV1{After: minute / 60, Spread: minute / 2, Endpoints: []string{"quic://b.forgeyard.example:7443"}},
		&protocol.GoAwayV1{After: day, Spread: day, Endpoints: times(protocol.MaxEndpoints, text(protocol.MaxEndpoint))},
		"a daemon shuts down and names another",
	)
}

func failure() []Sample {
	return three(
		&protocol.ErrorV1{Code: 1, Retry: 1},
		&protocol.ErrorV1{Code: 2, Retry: 5, Text: "log frames are missing"},
		&protocol.ErrorV1{Code: 255, Retry: 255, Text: text(protocol.MaxErrorText)},
		"a completion came before its log was sealed",
	)
}

func enroll() []Sample {
	list := three(
		&agentv1.EnrollV1{Request: []byte{0x30}},
		&agentv1.EnrollV1{Token: protocol.NewSecret([]byte("fye_not-a-real-token")), Name: "build-7", Request: filled(300, 0x30)},
		&agentv1.EnrollV1{
			Token: protocol.NewSecret(filled(agentv1.MaxToken, 't')), Name: text(agentv1.MaxRunnerName),
			Request: filled(agentv1.MaxCertRequest, 0x30),
		},
		"a first certificate for a one-time token; the request is a stand-in",
	)
	return append(list, Sample{
		"by-key", "no token: the key of an expired certificate is proved",
		&agentv1.EnrollV1{Name: "build-7", Request: filled(300, 0x30)},
	})
}

func certificates() (small, typical, large agentv1.CertificateV1) {
	return agentv1.CertificateV1{Chain: [][]byte{{0x30}}, Roots: [][]byte{{0x30}}},
		agentv1.CertificateV1{Chain: [][]byte{filled(600, 0x30)}, Roots: [][]byte{filled(500, 0x30)}, NotAfter: someTime},
		agentv1.CertificateV1{
			Chain:    times(agentv1.MaxChain, filled(agentv1.MaxCertBytes, 0x30)),
			Roots:    times(agentv1.MaxRoots, filled(agentv1.MaxCertBytes, 0x30)),
			NotAfter: protocol.MaxWall,
		}
}

func enrollAccepted() []Sample {
	small, typical, large := certificates()
	return three(
		&agentv1.EnrollAcceptedV1{Runner: least, Certificate: small},
		&agentv1.EnrollAcceptedV1{Runner: raw(0x10), Certificate: typical},
		&agentv1.EnrollAcceptedV1{Runner: most, Certificate: large},
		"a runner is made; the certificates are stand-ins",
	)
}

func renewCertificate() []Sample {
	return three(
		&agentv1.RenewCertificateV1{Peer: leastPeer, Request: []byte{0x30}},
		&agentv1.RenewCertificateV1{Peer: somePeer, Request: filled(300, 0x30)},
		&agentv1.RenewCertificateV1{Peer: mostPeer, Request: filled(agentv1.MaxCertRequest, 0x30)},
		"the request is a stand-in",
	)
}

func certificateIssued() []Sample {
	small, typical, large := certificates()
	return three(
		&agentv1.CertificateIssuedV1{Certificate: small},
		&agentv1.CertificateIssuedV1{Certificate: typical},
		&agentv1.CertificateIssuedV1{Certificate: large},
		"the certificates are stand-ins",
	)
}

func registrationAccepted() []Sample {
	transport, all := raw(0x12), most
	small := agentv1.PolicyV1{
		TTL: minute / 10, Renew: 1, Margin: minute / 30, KillLead: 2, SoftGrace: 1, OfferTTL: 1, Request: 1,
	}
	usual := agentv1.PolicyV1{
		TTL: minute, Grace: minute, Renew: minute / 4, Margin: minute / 30, KillLead: minute / 20, SoftGrace: minute / 30,
		OfferTTL: minute / 6, Request: minute / 6,
	}
	day := 24 * 60 * minute
	large := agentv1.PolicyV1{
		TTL: day, Grace: 7 * day, Renew: day / 4, Margin: longest, KillLead: day / 2, SoftGrace: day/2 - 1,
		OfferTTL: 60 * minute, Request: 60 * minute,
	}
	return three(
		&agentv1.RegistrationAcceptedV1{Policy: small},
		&agentv1.RegistrationAcceptedV1{Time: someTime, Policy: usual, Transport: &transport},
		&agentv1.RegistrationAcceptedV1{Time: protocol.MaxWall, Policy: large, Transport: &all},
		"the default time scale",
	)
}

func registrationRejected() []Sample {
	return three(
		&agentv1.RegistrationRejectedV1{Code: 1},
		&agentv1.RegistrationRejectedV1{Code: 0x204},
		&agentv1.RegistrationRejectedV1{Code: 1<<32 - 1},
		"a copy of a state folder",
	)
}
