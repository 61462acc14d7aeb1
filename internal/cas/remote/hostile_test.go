package remote_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// hand is a peer that speaks by hand on one stream.
type hand struct {
	t      *testing.T
	link   *link.Link
	s      transport.Stream
	frames *link.Frames
}

func byHand(t *testing.T, p *pair, kind protocol.StreamKind) *hand {
	t.Helper()
	s, err := p.agent.Open(t.Context(), kind, &casv1.StreamHeaderV1{Attempt: of.Attempt.ULID, Lease: of.Lease.ULID})
	if err != nil {
		t.Fatal(err)
	}
	return &hand{t, p.agent, s, p.agent.Frames(kind, s, s)}
}

// say writes a frame and bytes behind it. What comes of that is seen when something is heard.
func (h *hand) say(m protocol.Message, behind ...byte) {
	h.t.Helper()
	b, err := h.link.AppendFrame(nil, ident.New[forge.MessageID](), forge.MessageID{}, m)
	if err != nil {
		h.t.Fatal(err)
	}
	_, _ = h.s.Write(append(b, behind...))
}

// hear reads the next frame that is no acknowledgement.
func (h *hand) hear() (protocol.Message, error) {
	for {
		_, m, err := h.frames.Next()
		if _, ack := m.(*casv1.CasRangeStateV1); err != nil || !ack {
			return m, err
		}
	}
}

func (h *hand) end() {
	h.s.Stop(protocol.ResetCancelled)
	h.s.Reset(protocol.ResetCancelled)
}

// run is the header of a plain run.
func run(ref digest.Ref, offset, length int) *casv1.CasHeaderV1 {
	return &casv1.CasHeaderV1{
		Object: protocol.NewRef(ref), Offset: uint64(offset), Length: uint64(length), Encoding: casv1.EncodingPlain, Encoded: uint64(length),
	}
}

// bomb is a compressed run of which the header says one thing and the bytes another.
func bomb(t *testing.T, ref digest.Ref, says, is int) (*casv1.CasHeaderV1, []byte) {
	t.Helper()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := enc.EncodeAll(make([]byte, is), nil)
	if err := enc.Close(); err != nil {
		t.Fatal(err)
	}
	least := says / casv1.MaxRatio
	for len(b) < least {
		b = append(b, 0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0) // frames that are skipped
	}
	return &casv1.CasHeaderV1{
		Object: protocol.NewRef(ref), Length: uint64(says), Encoding: casv1.EncodingZstd, Encoded: uint64(len(b)),
	}, b
}

// Threats S15, S19 and S22: what a peer may not do costs its stream, and nothing of it is stored.
func TestAPeerThatLiesLosesItsStream(t *testing.T) {
	small, large := digest.RefOf(make([]byte, 1000)), digest.RefOf(make([]byte, 3<<20))
	big := digest.RefOf(make([]byte, remote.Small))
	stiff := noise(2, remote.Small) // more than may be on its way unacknowledged
	for _, attack := range []struct {
		name string
		kind protocol.StreamKind
		run  func(t *testing.T, h *hand)
		want protocol.ResetCode
	}{
		{"a run that begins elsewhere", protocol.StreamCASUpload, func(_ *testing.T, h *hand) {
			h.say(run(small, 1, 999), make([]byte, 999)...)
		}, protocol.ResetBadRange},
		{"a run that leaves a hole", protocol.StreamCASUpload, func(_ *testing.T, h *hand) {
			h.say(run(small, 0, 10), make([]byte, 10)...)
			h.say(run(small, 20, 10), make([]byte, 10)...)
		}, protocol.ResetBadRange},
		{"two objects at a time", protocol.StreamCASUpload, func(_ *testing.T, h *hand) {
			h.say(run(small, 0, 10), make([]byte, 10)...)
			h.say(run(big, 0, 10), make([]byte, 10)...)
		}, protocol.ResetBadRange},
		{"runs of nothing for ever", protocol.StreamCASUpload, func(_ *testing.T, h *hand) {
			h.say(run(small, 0, 10), make([]byte, 10)...)
			h.say(run(small, 10, 0))
		}, protocol.ResetBadRange},
		{"a large object that was not announced", protocol.StreamCASUpload, func(_ *testing.T, h *hand) {
			h.say(run(large, 0, 1000), make([]byte, 1000)...)
		}, protocol.ResetBadRange},
		{"a large object from where it is not held", protocol.StreamCASUpload, func(_ *testing.T, h *hand) {
			h.say(run(large, 0, 0))
			h.say(run(large, 1<<20, 1000), make([]byte, 1000)...)
		}, protocol.ResetBadRange},
		{"a run that inflates to 64 MiB", protocol.StreamCASUpload, func(t *testing.T, h *hand) {
			header, b := bomb(t, big, remote.Small, 64<<20)
			h.say(header, b...)
		}, protocol.ResetMalformed},
		{"a run that inflates to more than it says", protocol.StreamCASUpload, func(t *testing.T, h *hand) {
			header, b := bomb(t, small, 1000, 1001)
			h.say(header, b...)
		}, protocol.ResetMalformed},
		{"a run that inflates to less than it says", protocol.StreamCASUpload, func(t *testing.T, h *hand) {
			header, b := bomb(t, small, 1000, 999)
			h.say(header, b...)
		}, protocol.ResetMalformed},
		{"a run that is no snappy", protocol.StreamCASUpload, func(_ *testing.T, h *hand) {
			header := run(small, 0, 1000)
			header.Encoding, header.Encoded = casv1.EncodingSnappy, 500
			h.say(header, bytes.Repeat([]byte{0xff}, 500)...)
		}, protocol.ResetMalformed},
		{"a run whose snappy says that it is longer", protocol.StreamCASUpload, func(_ *testing.T, h *hand) {
			b := s2.EncodeSnappy(nil, make([]byte, 1001))
			header := run(small, 0, 1000)
			header.Encoding, header.Encoded = casv1.EncodingSnappy, uint64(len(b))
			h.say(header, b...)
		}, protocol.ResetMalformed},
		{"a run that is no zstd", protocol.StreamCASUpload, func(_ *testing.T, h *hand) {
			header := run(small, 0, 1000)
			header.Encoding, header.Encoded = casv1.EncodingZstd, 500
			h.say(header, make([]byte, 500)...)
		}, protocol.ResetMalformed},
		{"an end within a run", protocol.StreamCASUpload, func(t *testing.T, h *hand) {
			h.say(run(small, 0, 1000), make([]byte, 10)...)
			if err := h.s.Close(); err != nil {
				t.Error(err)
			}
		}, protocol.ResetMalformed},
		{"a result that nobody asked for", protocol.StreamCASUpload, func(_ *testing.T, h *hand) {
			h.say(&casv1.CasResultV1{Object: protocol.NewRef(small), Outcome: casv1.OutcomeStored})
		}, protocol.ResetMalformed},
		{"requests without an end", protocol.StreamCASDownload, func(_ *testing.T, h *hand) {
			h.say(&casv1.CasRangeStateV1{Object: protocol.NewRef(digest.RefOf(stiff))}) // which is not acknowledged
			for i := range 2 * remote.MaxAsked {
				h.say(&casv1.CasRangeStateV1{Object: protocol.NewRef(digest.RefOf([]byte{byte(i), byte(i >> 8)}))})
			}
		}, protocol.ResetLimit},
		{"bytes where requests are expected", protocol.StreamCASDownload, func(_ *testing.T, h *hand) {
			h.say(run(small, 0, 1000), make([]byte, 1000)...)
		}, protocol.ResetMalformed},
	} {
		t.Run(attack.name, func(t *testing.T) {
			theirs := newShelf(stiff)
			w := newWorld(t, inMemory, theirs)
			h := byHand(t, w.connect(), attack.kind)
			attack.run(t, h)
			var err error
			for err == nil { // what was asked for may come first
				if attack.kind == protocol.StreamCASDownload {
					_, err = io.Copy(io.Discard, h.s)
				} else {
					_, err = h.hear()
				}
			}
			var reset *transport.ResetError
			if !errors.As(err, &reset) || reset.Code != attack.want {
				t.Errorf("it ended with %v, not %v", err, attack.want)
			}
			h.end()
			if len(theirs.objects) != 1 {
				t.Errorf("%d objects are stored", len(theirs.objects))
			}
			o := noise(1, 100) // the connection goes on
			if err := w.store().Put(t.Context(), digest.RefOf(o), bytes.NewReader(o)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBytesThatAreAnotherObjectAreToldApart(t *testing.T) {
	for _, n := range []int{1000, 3 << 20} {
		theirs := newShelf()
		w := newWorld(t, inMemory, theirs)
		h := byHand(t, w.connect(), protocol.StreamCASUpload)
		ref := digest.RefOf(noise(1, n))
		if n > remote.Small {
			h.say(run(ref, 0, 0))
		}
		go func() {
			for at := 0; at < n; at += min(n-at, 1<<20) {
				h.say(run(ref, at, min(n-at, 1<<20)), noise(2, min(n-at, 1<<20))...)
			}
		}()
		m, err := h.hear()
		if got, ok := m.(*casv1.CasResultV1); !ok || got.Outcome != casv1.OutcomeDigestMismatch {
			t.Errorf("%d bytes: %+v, %v", n, m, err)
		}
		h.end()
		if len(theirs.objects) > 0 {
			t.Error("it is stored")
		}
	}
}

func TestMoreStreamsThanAPeerMayHaveComeLater(t *testing.T) {
	w := newWorld(t, inMemory, newShelf())
	p := w.connect()
	var hands []*hand
	refused := 0
	for range remote.MaxStreams + 3 {
		h := byHand(t, p, protocol.StreamCASUpload)
		hands = append(hands, h)
		h.say(&casv1.NeedObjectsV1{Objects: []protocol.RefV1{protocol.NewRef(digest.RefOf([]byte("x")))}})
		_, err := h.hear()
		var reset *transport.ResetError
		switch {
		case err == nil:
		case errors.As(err, &reset) && reset.Code == protocol.ResetResumeLater:
			refused++
		default:
			t.Error(err)
		}
	}
	if refused != 3 {
		t.Errorf("%d were refused", refused)
	}
	for _, h := range hands {
		h.end()
	}
}

// A peer that says nothing, or dribbles, holds a stream for a while and no longer.
func TestASlowPeerLosesItsStream(t *testing.T) {
	for name, slow := range map[string]func(h *hand){
		"silent from the start": func(*hand) {},
		"silent within a run":   func(h *hand) { h.say(run(digest.RefOf(make([]byte, 1000)), 0, 1000), 1, 2, 3) },
		"a byte at a time": func(h *hand) {
			h.say(run(digest.RefOf(make([]byte, 1000)), 0, 1000))
			for range 1000 {
				if _, err := h.s.Write([]byte{0}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, inMemory, newShelf())
				h := byHand(t, w.connect(), protocol.StreamCASUpload)
				at := time.Now()
				done := make(chan struct{})
				go func() {
					defer close(done)
					slow(h)
				}()
				_, err := h.hear()
				var reset *transport.ResetError
				if !errors.As(err, &reset) || reset.Code != protocol.ResetTimeout || time.Since(at) > 2*time.Minute {
					t.Errorf("%v after %v", err, time.Since(at))
				}
				h.end()
				<-done
				w.close()
			})
		})
	}
}

// Nobody reads what was asked for: the daemon stops sending, and gives up after a while.
func TestAPeerThatDoesNotReadLosesItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := noise(1, 20<<20)
		w := newWorld(t, inMemory, newShelf(o))
		p := w.connect()
		h := byHand(t, p, protocol.StreamCASDownload)
		h.say(&casv1.CasRangeStateV1{Object: protocol.NewRef(digest.RefOf(o))})
		time.Sleep(3 * time.Minute)
		if sent := w.server.Figures().Sent; sent > 5<<20 {
			t.Errorf("%d bytes were sent to nobody", sent)
		}
		_, err := io.Copy(io.Discard, h.s)
		var reset *transport.ResetError
		if !errors.As(err, &reset) || reset.Code != protocol.ResetTimeout {
			t.Error(err)
		}
		h.end()
		w.close()
	})
}

// daemonByHand answers the streams of a client by hand.
func daemonByHand(t *testing.T, answer func(h *link.Inbound, say func(protocol.Message, ...byte))) *world {
	w := newWorld(t, inMemory, newShelf())
	w.byHand = func(l *link.Link, in *link.Inbound) {
		defer in.Reset(protocol.ResetCancelled)
		frames := in.Frames()
		if _, _, err := frames.Next(); err != nil {
			return
		}
		answer(in, func(m protocol.Message, behind ...byte) {
			b, err := l.AppendFrame(nil, ident.New[forge.MessageID](), forge.MessageID{}, m)
			if err != nil {
				t.Error(err)
			}
			_, _ = in.Send.Write(append(b, behind...))
		})
		_, _ = io.Copy(io.Discard, in.Receive)
	}
	w.connect()
	return w
}

func TestADaemonThatLiesIsNotBelieved(t *testing.T) {
	o := noise(1, 1000)
	ref, other := digest.RefOf(o), digest.RefOf(noise(2, 1000))
	for name, say := range map[string]func(say func(protocol.Message, ...byte)){
		"other bytes":    func(say func(protocol.Message, ...byte)) { say(run(ref, 0, 1000), noise(2, 1000)...) },
		"another object": func(say func(protocol.Message, ...byte)) { say(run(other, 0, 1000), noise(2, 1000)...) },
		"a hole":         func(say func(protocol.Message, ...byte)) { say(run(ref, 500, 500), o[500:]...) },
		"a bomb": func(say func(protocol.Message, ...byte)) {
			header, b := bomb(t, ref, 1000, 1<<20)
			say(header, b...)
		},
		"no bytes at all": func(say func(protocol.Message, ...byte)) { say(run(ref, 0, 0)) },
		"a result that says it is stored": func(say func(protocol.Message, ...byte)) {
			say(&casv1.CasResultV1{Object: protocol.NewRef(ref), Outcome: casv1.OutcomeStored})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := daemonByHand(t, func(_ *link.Inbound, answer func(protocol.Message, ...byte)) { say(answer) })
			mine := newShelf()
			if err := w.store().CopyTo(t.Context(), mine, []digest.Ref{ref}); err == nil {
				t.Error("it was believed")
			}
			rc, err := w.store().Open(t.Context(), ref)
			if err == nil {
				_, err = io.Copy(io.Discard, rc)
				_ = rc.Close()
			}
			if err == nil {
				t.Error("it was read")
			}
			if len(mine.objects) > 0 {
				t.Error("it is stored")
			}
		})
	}
}

func TestADaemonMayOnlyCallMissingWhatItWasAskedAbout(t *testing.T) {
	w := daemonByHand(t, func(_ *link.Inbound, say func(protocol.Message, ...byte)) {
		say(&casv1.MissingObjectsV1{Objects: []protocol.RefV1{protocol.NewRef(digest.RefOf([]byte("a file of yours")))}})
	})
	if missing, err := w.store().Missing(t.Context(), refsOf([][]byte{{1}})); err == nil {
		t.Errorf("%v", missing)
	}
}

// Cancel does not wait for anything.
func TestACancelledTransferEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := noise(1, 30<<20)
		theirs := newShelf()
		theirs.written = func(total int) {
			if total > 8<<20 {
				cancel()
			}
		}
		w := newWorld(t, inMemory, theirs)
		w.connect()
		at := time.Now()
		err := w.store().CopyFrom(ctx, newShelf(o), refsOf([][]byte{o}))
		if !errors.Is(err, context.Canceled) || time.Since(at) > time.Second {
			t.Errorf("%v after %v", err, time.Since(at))
		}
		w.close()
	})
}

var _ cas.Store = (*remote.Store)(nil)
