package protocoltest

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
)

func logFrame() []Sample {
	return three(
		&logv1.LogFrameV1{Seq: 1, Kind: 1, Bytes: []byte{0}},
		&logv1.LogFrameV1{Seq: 381, Kind: 2, Time: someTime, Bytes: []byte("make: *** [all] Error 2\n")},
		&logv1.LogFrameV1{Seq: most64, Kind: 4, Time: protocol.MaxWall, Bytes: filled(forge.MaxLogPayload, 0xff)},
		"a line of a compiler's output",
	)
}

func logAck() []Sample {
	return three(
		&logv1.LogAckV1{Attempt: least, Next: 1},
		&logv1.LogAckV1{Attempt: raw(0x21), Next: 382},
		&logv1.LogAckV1{Attempt: most, Next: most64},
		"381 frames are durable",
	)
}

func logResume() []Sample {
	return three(
		&logv1.LogResumeV1{Attempt: least, From: 1},
		&logv1.LogResumeV1{Attempt: raw(0x21), From: 200},
		&logv1.LogResumeV1{Attempt: most, From: most64},
		"the frames from 200 on are wanted again",
	)
}

func logFinal() []Sample {
	return three(
		&logv1.LogFinalV1{Context: leastContext},
		&logv1.LogFinalV1{Context: someContext, Seal: protocol.LogSealV1{Last: 380, Bytes: 52_133, Hash: otherD}},
		&logv1.LogFinalV1{Context: mostContext, Seal: protocol.LogSealV1{Last: most64, Bytes: most64, Hash: mostD}},
		"a log of 380 frames",
	)
}

func logFinalAck() []Sample {
	return three(
		&logv1.LogFinalAckV1{Attempt: least},
		&logv1.LogFinalAckV1{Attempt: raw(0x21)},
		&logv1.LogFinalAckV1{Attempt: most},
		"the log is sealed",
	)
}

func needObjects() []Sample {
	return three(
		&casv1.NeedObjectsV1{Objects: []protocol.RefV1{leastRef}},
		&casv1.NeedObjectsV1{Objects: []protocol.RefV1{someRef, {Digest: otherD, Bytes: 17}}},
		&casv1.NeedObjectsV1{Objects: times(casv1.MaxObjects, mostRef)},
		"two objects are about to be uploaded",
	)
}

func missingObjects() []Sample {
	return three(
		&casv1.MissingObjectsV1{},
		&casv1.MissingObjectsV1{Objects: []protocol.RefV1{{Digest: otherD, Bytes: 17}}},
		&casv1.MissingObjectsV1{Objects: times(casv1.MaxObjects, mostRef)},
		"one of them is missing",
	)
}

func casHeader() []Sample {
	list := three(
		&casv1.CasHeaderV1{Object: leastRef, Encoding: 1},
		&casv1.CasHeaderV1{Object: someRef, Offset: 65_536, Length: 57_920, Encoding: 1, Encoded: 57_920},
		&casv1.CasHeaderV1{Object: mostRef, Offset: protocol.MaxObject - casv1.MaxRun, Length: casv1.MaxRun, Encoding: 2, Encoded: casv1.MaxRun},
		"the rest of an object from its second 64 KiB on",
	)
	return append(list, Sample{"compressed in haste", "a run that snappy made a third of", &casv1.CasHeaderV1{
		Object: someRef, Offset: 65_536, Length: 57_920, Encoding: 3, Encoded: 19_306,
	}}, Sample{"compressed", "a run that zstd made an eighth of", &casv1.CasHeaderV1{
		Object: someRef, Length: 123_456, Encoding: 2, Encoded: 15_432,
	}})
}

func casRangeState() []Sample {
	return three(
		&casv1.CasRangeStateV1{Object: leastRef},
		&casv1.CasRangeStateV1{Object: someRef, Held: []casv1.RangeV1{{Length: 65_536}, {Offset: 100_000, Length: 23_456}}},
		&casv1.CasRangeStateV1{Object: mostRef, Held: each(casv1.MaxRanges, func(i int) casv1.RangeV1 {
			return casv1.RangeV1{Offset: protocol.MaxObject - 2*uint64(casv1.MaxRanges-i) - 1, Length: 1}
		})},
		"the beginning and the end of an object are there",
	)
}

func casResult() []Sample {
	return three(
		&casv1.CasResultV1{Object: leastRef, Outcome: 1},
		&casv1.CasResultV1{Object: someRef, Outcome: 4},
		&casv1.CasResultV1{Object: mostRef, Outcome: 8},
		"the bytes were not those of the digest",
	)
}

func secretRequest() []Sample {
	return three(
		&agentv1.SecretRequestV1{Context: leastContext, Name: "a"},
		&agentv1.SecretRequestV1{Context: someContext, Name: "codecov/token"},
		&agentv1.SecretRequestV1{Context: mostContext, Name: text(forge.MaxRefName), Version: 1<<32 - 1},
		"the newest version of a token",
	)
}

// SecretSample is the value in the samples of secrets. It must never be seen in anything that is printed.
const SecretSample = "hunter2-not-a-real-secret"

func secretMaterial() []Sample {
	list := three(
		&agentv1.SecretMaterialV1{Attempt: least, Lease: least, Name: "a"},
		&agentv1.SecretMaterialV1{
			Attempt: raw(0x21), Lease: raw(0x22), Name: "codecov/token", Version: 4,
			Value: protocol.NewSecret([]byte(SecretSample)), Expires: 60 * minute,
		},
		&agentv1.SecretMaterialV1{
			Attempt: most, Lease: most, Name: text(forge.MaxRefName), Version: 1<<32 - 1,
			Value: protocol.NewSecret(filled(forge.MaxSecret, 's')), Expires: longest,
		},
		"a made-up value, for an hour",
	)
	list[0].About = "there is no such secret for this attempt"
	return list
}

// HeadSample is a valid header of a stream.
type HeadSample struct {
	Name string
	Kind protocol.StreamKind
	Head protocol.StreamHead
}

// StreamHeads returns headers of every kind that is opened.
func StreamHeads() []HeadSample {
	log := func(id [16]byte, first uint64, e logv1.EncodingV1) protocol.StreamHead {
		return &logv1.StreamHeaderV1{Attempt: id, Lease: id, First: first, Encoding: e}
	}
	cas := func(id [16]byte) protocol.StreamHead { return &casv1.StreamHeaderV1{Attempt: id, Lease: id} }
	secret := func(id [16]byte) protocol.StreamHead { return &agentv1.SecretHeaderV1{Attempt: id, Lease: id} }
	return []HeadSample{
		{"control", protocol.StreamControl, &protocol.ControlHeaderV1{}},
		{"log-smallest", protocol.StreamLog, log(least, 1, logv1.EncodingPlain)},
		{"log-typical", protocol.StreamLog, log(raw(0x21), 381, logv1.EncodingZstd)},
		{"log-largest", protocol.StreamLog, log(most, most64, logv1.EncodingZstd)},
		{"cas-download-smallest", protocol.StreamCASDownload, cas(least)},
		{"cas-download-typical", protocol.StreamCASDownload, cas(raw(0x21))},
		{"cas-download-largest", protocol.StreamCASDownload, cas(most)},
		{"cas-upload-smallest", protocol.StreamCASUpload, cas(least)},
		{"cas-upload-typical", protocol.StreamCASUpload, cas(raw(0x21))},
		{"cas-upload-largest", protocol.StreamCASUpload, cas(most)},
		{"secret-smallest", protocol.StreamSecret, secret(least)},
		{"secret-typical", protocol.StreamSecret, secret(raw(0x21))},
		{"secret-largest", protocol.StreamSecret, secret(most)},
	}
}
