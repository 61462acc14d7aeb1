package link_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/transport"
)

func TestStreamsArriveWithTheirHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := linkUp(t)
		defer l.close()
		l.active(t)
		head := &logv1.StreamHeaderV1{Attempt: attempt.ULID, Lease: lease.ULID, First: 4, Encoding: logv1.EncodingPlain}
		s, err := l.agent.OpenSend(t.Context(), protocol.StreamLog, head)
		if err != nil {
			t.Fatal(err)
		}
		line := &logv1.LogFrameV1{Seq: 4, Kind: 1, Bytes: []byte("hello")}
		b, err := l.agent.AppendFrame(nil, ident.New[forge.MessageID](), forge.MessageID{}, line)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		in, err := l.daemon.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := in.Head.(*logv1.StreamHeaderV1); !ok || *got != *head || in.Kind != protocol.StreamLog || in.Send != nil {
			t.Errorf("the daemon got %+v", in)
		}
		frames := in.Frames()
		_, m, err := frames.Next()
		if got, ok := m.(*logv1.LogFrameV1); err != nil || !ok || string(got.Bytes) != "hello" {
			t.Errorf("%+v, %v", m, err)
		}
		if _, _, err := frames.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream ends with %v", err)
		}
	})
}

func TestABadFrameOnALogCostsThatStreamAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := linkUp(t)
		defer l.close()
		l.active(t)
		s, err := l.agent.OpenSend(t.Context(), protocol.StreamLog, &logv1.StreamHeaderV1{
			Attempt: attempt.ULID, Lease: lease.ULID, First: 1, Encoding: logv1.EncodingPlain,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write([]byte{0, 0, 0, 9, 5, 1, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}); err != nil {
			t.Fatal(err)
		}
		in, err := l.daemon.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = in.Frames().Next()
		var v *protocol.Violation
		if !errors.As(err, &v) || v.Fault != protocol.FaultMalformed || v.Severity() != protocol.SeverityStream {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		_, err = s.Write([]byte{1})
		var reset *transport.ResetError
		if !errors.As(err, &reset) || reset.Code != protocol.ResetMalformed {
			t.Errorf("the agent's write gives %v", err)
		}
		if err := sendBeside(t, l.agent, &forge.CancelAck{Attempt: attempt, Lease: lease}); err != nil {
			t.Error(err)
		}
	})
}

// Places come back with the streams that had them.
func TestAPlaceForAStreamIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, d := ends(protocol.ALPNAgent)
		l := agree(t, a, d, link.Config{}, link.Config{Streams: map[protocol.StreamKind]int{protocol.StreamSecret: 2}})
		defer l.close()
		l.active(t)
		head := &agentv1.SecretHeaderV1{Attempt: attempt.ULID, Lease: lease.ULID}
		for range 100 {
			s, err := l.agent.Open(t.Context(), protocol.StreamSecret, head)
			if err != nil {
				t.Fatal(err)
			}
			in, err := l.daemon.Accept(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(in.Receive); err != nil {
				t.Fatal(err)
			}
			if err := in.Send.Close(); err != nil {
				t.Fatal(err)
			}
			s.Stop(protocol.ResetCancelled)
		}
		if f := l.seen.faults(); f != nil {
			t.Errorf("the observer saw %v", f)
		}
	})
}

func TestADaemonOpensNoStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := linkUp(t)
		defer l.close()
		l.active(t)
		_, err := l.daemon.Open(t.Context(), protocol.StreamSecret, &agentv1.SecretHeaderV1{Attempt: attempt.ULID, Lease: lease.ULID})
		if err != nil {
			t.Fatal(err)
		}
		<-l.daemon.Context().Done()
		if got := closeOf(t, context.Cause(l.daemon.Context())); got.Reason != forge.CloseRoleViolation || !got.Remote {
			t.Errorf("it ends with %v", got)
		}
	})
}
