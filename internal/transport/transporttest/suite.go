// Package transporttest holds every road to the contract of transport, and has roads with faults: slow, narrow, half open,
// cut.
//
// Run is the suite. Each of its tests gets a fresh pair of ends from the road under test and leaves nothing behind.
package transporttest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Streams is how many streams of each shape the roads under test admit at once.
const Streams = 4

// patience is how long a test waits for something that must come. It is no measurement: where it runs out, the road hangs.
const patience = 20 * time.Second

// Ends are the two ends of one connection.
type Ends struct{ Dialled, Accepted transport.Conn }

// Road makes connections that admit Streams streams of each shape. It ends them with the test.
type Road func(t *testing.T) Ends

// Run runs the suite on a road.
func Run(t *testing.T, road Road) {
	for name, test := range map[string]func(*testing.T, *pair){
		"BytesArriveInOrderAndWhole":          bytesArriveInOrderAndWhole,
		"StreamsDoNotWaitForEachOther":        streamsDoNotWaitForEachOther,
		"BothEndsOpenStreams":                 bothEndsOpenStreams,
		"OneDirectionEndsBeforeTheOther":      oneDirectionEndsBeforeTheOther,
		"CloseEndsEveryCallWithItsCode":       closeEndsEveryCallWithItsCode,
		"OnlyTheFirstCloseCounts":             onlyTheFirstCloseCounts,
		"ResetReachesTheReader":               resetReachesTheReader,
		"StopReachesTheWriter":                stopReachesTheWriter,
		"ResetEndsAWriteThatWaits":            resetEndsAWriteThatWaits,
		"ResetAfterCloseLosesNothing":         resetAfterCloseLosesNothing,
		"WhatMayNotBeKnownIsSaidAsNotFound":   whatMayNotBeKnownIsSaidAsNotFound,
		"ReadGoesOnAfterItsDeadline":          readGoesOnAfterItsDeadline,
		"AWriteThatIsLateSpoilsItsStream":     aWriteThatIsLateSpoilsItsStream,
		"AStreamIsSeenAtItsFirstByte":         aStreamIsSeenAtItsFirstByte,
		"StreamsWaitForAPlace":                streamsWaitForAPlace,
		"APlaceIsFreeOnceBothDirectionsEnded": aPlaceIsFreeOnceBothDirectionsEnded,
		"AThousandStreamsLeaveNoPlaceTaken":   aThousandStreamsLeaveNoPlaceTaken,
		"ACallEndsWithItsContext":             aCallEndsWithItsContext,
		"CloseBesideWriteIsSafe":              closeBesideWriteIsSafe,
	} {
		t.Run(name, func(t *testing.T) {
			ends := road(t)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			test(t, &pair{ctx: ctx, a: ends.Dialled, b: ends.Accepted})
		})
	}
}

// pair is what a test works with.
type pair struct {
	ctx  context.Context
	a, b transport.Conn
}

// stream opens a stream at a and accepts it at b, with one byte on it that was read.
func (p *pair) stream(t *testing.T) (here, there transport.Stream) {
	t.Helper()
	here = must(p.a.OpenStream(p.ctx))(t)
	must(here.Write([]byte{1}))(t)
	there = must(p.b.AcceptStream(p.ctx))(t)
	must(io.ReadFull(there, make([]byte, 1)))(t)
	return here, there
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// end ends every direction of some streams.
func end(streams ...transport.Stream) {
	for _, s := range streams {
		s.Stop(protocol.ResetCancelled)
		s.Reset(protocol.ResetCancelled)
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// both runs two sides of a dialogue and waits for them.
func both(t *testing.T, a, b func() error) {
	t.Helper()
	var errA, errB error
	var wait sync.WaitGroup
	wait.Go(func() { errA = a() })
	wait.Go(func() { errB = b() })
	wait.Wait()
	if errA != nil || errB != nil {
		t.Fatalf("%v; %v", errA, errB)
	}
}

func bytesArriveInOrderAndWhole(t *testing.T, p *pair) {
	want := random(9 << 20) // more than all windows
	s := must(p.a.OpenSendStream(p.ctx))(t)
	both(t, func() error {
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 1+len(rest)%70_000)
			if _, err := s.Write(rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return s.Close()
	}, func() error {
		r, err := p.b.AcceptReceiveStream(p.ctx)
		if err != nil {
			return err
		}
		got, err := io.ReadAll(r)
		if err == nil && !bytes.Equal(got, want) {
			err = fmt.Errorf("%d bytes arrived that are not the %d that were sent", len(got), len(want))
		}
		return err
	})
}

// A reader that rests on one stream holds up that stream alone.
func streamsDoNotWaitForEachOther(t *testing.T, p *pair) {
	slow, slowThere := p.stream(t)
	defer end(slow, slowThere)
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = slow.Write(make([]byte, 3<<20)) }) // more than its window, and nobody reads
	for range 50 {
		quick, there := p.stream(t)
		must(there.Write([]byte("pong")))(t)
		must(io.ReadFull(quick, make([]byte, 4)))(t)
		end(quick, there)
	}
	slow.Reset(protocol.ResetCancelled)
	wait.Wait()
}

func bothEndsOpenStreams(t *testing.T, p *pair) {
	p.a, p.b = p.b, p.a
	here, there := p.stream(t)
	end(here, there)
	s := must(p.a.OpenSendStream(p.ctx))(t)
	must(s.Write([]byte("hello")))(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r := must(p.b.AcceptReceiveStream(p.ctx))(t)
	if got := must(io.ReadAll(r))(t); string(got) != "hello" {
		t.Fatalf("read %q", got)
	}
}

func oneDirectionEndsBeforeTheOther(t *testing.T, p *pair) {
	here, there := p.stream(t)
	must(here.Write([]byte("question")))(t)
	if err := here.Close(); err != nil {
		t.Fatal(err)
	}
	if got := must(io.ReadAll(there))(t); string(got) != "question" {
		t.Fatalf("read %q", got)
	}
	must(there.Write([]byte("answer")))(t)
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	if got := must(io.ReadAll(here))(t); string(got) != "answer" {
		t.Fatalf("read %q", got)
	}
	if _, err := here.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("a write after Close gives %v", err)
	}
}

func closeEndsEveryCallWithItsCode(t *testing.T, p *pair) {
	here, there := p.stream(t)
	accepted := func(c transport.Conn) error { _, err := c.AcceptStream(p.ctx); return err }
	received := func(c transport.Conn) error { _, err := c.AcceptReceiveStream(p.ctx); return err }
	read := func(s transport.Stream) error { _, err := s.Read(make([]byte, 1)); return err }
	calls := []func() error{
		func() error { return accepted(p.a) }, func() error { return received(p.a) }, func() error { return read(here) },
		func() error { return accepted(p.b) }, func() error { return received(p.b) }, func() error { return read(there) },
		func() error { _, err := here.Write(make([]byte, 3<<20)); return err },
	}
	errs := make([]error, len(calls))
	var wait sync.WaitGroup
	for i, call := range calls {
		wait.Go(func() { errs[i] = call() })
	}
	p.b.Close(protocol.CloseCodeOf(forge.CloseRunnerDisabled))
	wait.Wait()
	for i, err := range errs {
		atB := i >= 3 && i < 6
		isClose(t, err, forge.CloseRunnerDisabled, !atB)
	}
	<-p.a.Context().Done()
	isClose(t, context.Cause(p.a.Context()), forge.CloseRunnerDisabled, true)
	isClose(t, context.Cause(p.b.Context()), forge.CloseRunnerDisabled, false)
	for _, c := range []transport.Conn{p.a, p.b} {
		_, err := c.OpenStream(p.ctx)
		isClose(t, err, forge.CloseRunnerDisabled, c == p.a)
	}
}

// isClose fails the test unless err is the end of a connection for a reason.
func isClose(t *testing.T, err error, reason forge.CloseReason, remote bool) {
	t.Helper()
	var closed *transport.CloseError
	if !errors.As(err, &closed) || closed.Reason != reason || closed.Remote != remote {
		t.Errorf("%v; want a close for %v, remote %v", err, reason, remote)
	}
}

func onlyTheFirstCloseCounts(t *testing.T, p *pair) {
	p.a.Close(protocol.CloseCodeOf(forge.CloseShutdown))
	p.a.Close(protocol.CloseCodeOf(forge.CloseInternal))
	<-p.b.Context().Done()
	p.b.Close(protocol.CloseCodeOf(forge.CloseInternal))
	isClose(t, context.Cause(p.a.Context()), forge.CloseShutdown, false)
	isClose(t, context.Cause(p.b.Context()), forge.CloseShutdown, true)
}

// isReset fails the test unless err is the end of a direction with a code.
func isReset(t *testing.T, err error, code protocol.ResetCode) {
	t.Helper()
	var reset *transport.ResetError
	if !errors.As(err, &reset) || reset.Code != code {
		t.Errorf("%v; want a reset with %v", err, code)
	}
}

func resetReachesTheReader(t *testing.T, p *pair) {
	here, there := p.stream(t)
	defer end(here, there)
	here.Reset(protocol.ResetQuota)
	here.Reset(protocol.ResetCancelled)
	_, err := there.Read(make([]byte, 1))
	isReset(t, err, protocol.ResetQuota)
	if _, err := here.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write after Reset gives %v", err)
	}
}

func stopReachesTheWriter(t *testing.T, p *pair) {
	here, there := p.stream(t)
	defer end(here, there)
	there.Stop(protocol.ResetStorageFull)
	there.Stop(protocol.ResetCancelled)
	if _, err := there.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a read after Stop gives %v", err)
	}
	var err error
	for err == nil {
		_, err = here.Write(make([]byte, 64<<10))
	}
	isReset(t, err, protocol.ResetStorageFull)
	isReset(t, here.Close(), protocol.ResetStorageFull)
}

func resetEndsAWriteThatWaits(t *testing.T, p *pair) {
	here, there := p.stream(t)
	defer end(here, there)
	done := make(chan error)
	go func() {
		_, err := here.Write(make([]byte, 3<<20))
		done <- err
	}()
	must(io.ReadFull(there, make([]byte, 1<<10)))(t) // it has begun
	here.Reset(protocol.ResetCancelled)
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Fatalf("the write ends with %v", err)
	}
}

func resetAfterCloseLosesNothing(t *testing.T, p *pair) {
	for range 100 {
		here, there := p.stream(t)
		want := random(5000)
		must(here.Write(want))(t)
		if err := here.Close(); err != nil {
			t.Fatal(err)
		}
		here.Reset(protocol.ResetCancelled)
		if got := must(io.ReadAll(there))(t); !bytes.Equal(got, want) {
			t.Fatalf("read %d bytes of %d", len(got), len(want))
		}
		end(here, there)
	}
}

func whatMayNotBeKnownIsSaidAsNotFound(t *testing.T, p *pair) {
	here, there := p.stream(t)
	here.Reset(protocol.ResetNotAuthorized)
	_, err := there.Read(make([]byte, 1))
	isReset(t, err, protocol.ResetNotFound)
	end(here, there)
}

func readGoesOnAfterItsDeadline(t *testing.T, p *pair) {
	here, there := p.stream(t)
	defer end(here, there)
	if err := there.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a late read gives %v", err)
	}
	done := make(chan error)
	if err := there.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := there.Read(make([]byte, 1))
		done <- err
	}()
	for range 2 { // whether it waits already or not
		if err := there.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a late read gives %v", err)
	}
	if err := there.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	must(here.Write([]byte("x")))(t)
	must(io.ReadFull(there, make([]byte, 1)))(t)
}

func aWriteThatIsLateSpoilsItsStream(t *testing.T, p *pair) {
	here, there := p.stream(t)
	defer end(here, there)
	if err := here.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Write(make([]byte, 3<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a late write gives %v", err)
	}
	if err := here.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Write([]byte{1}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a write after a late one gives %v", err)
	}
	if err := here.Close(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a close after a late write gives %v", err)
	}
	_, err := io.Copy(io.Discard, there)
	isReset(t, err, protocol.ResetTimeout)
}

func aStreamIsSeenAtItsFirstByte(t *testing.T, p *pair) {
	here := must(p.a.OpenStream(p.ctx))(t)
	short, cancel := context.WithTimeout(p.ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := p.b.AcceptStream(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a stream without a byte was accepted: %v", err)
	}
	must(here.Write([]byte{1}))(t)
	there := must(p.b.AcceptStream(p.ctx))(t)
	end(here, there)
}

func streamsWaitForAPlace(t *testing.T, p *pair) {
	var here, there []transport.Stream
	for range Streams {
		h, o := p.stream(t)
		here, there = append(here, h), append(there, o)
	}
	short, cancel := context.WithTimeout(p.ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := p.a.OpenStream(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("one stream more than there is place for: %v", err)
	}
	opened := make(chan error)
	go func() {
		s, err := p.a.OpenStream(p.ctx)
		if err == nil {
			end(s)
		}
		opened <- err
	}()
	end(here[0], there[0])
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	end(append(here, there...)...)
}

// A stream with one direction open still has its place, however the other ended.
func aPlaceIsFreeOnceBothDirectionsEnded(t *testing.T, p *pair) {
	for range Streams {
		here, there := p.stream(t)
		if err := here.Close(); err != nil {
			t.Fatal(err)
		}
		must(io.ReadAll(there))(t)
		defer end(here, there)
	}
	short, cancel := context.WithTimeout(p.ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := p.a.OpenStream(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("half-closed streams hold no place: %v", err)
	}
}

func aThousandStreamsLeaveNoPlaceTaken(t *testing.T, p *pair) {
	ways := []func(here, there transport.Stream){
		func(here, there transport.Stream) { end(here, there) },
		func(here, there transport.Stream) { end(there, here) },
		func(here, there transport.Stream) {
			_ = here.Close()
			_ = there.Close()
			_, _ = io.ReadAll(there)
			_, _ = io.ReadAll(here)
		},
		func(here, there transport.Stream) {
			here.Stop(protocol.ResetCancelled)
			_ = here.Close()
			there.Reset(protocol.ResetCancelled)
			_, _ = io.ReadAll(there)
		},
		func(here, there transport.Stream) {
			here.Reset(protocol.ResetLimit)
			_, _ = io.ReadAll(there)
			_ = there.Close()
			_, _ = io.ReadAll(here)
		},
	}
	for i := range 1000 {
		here, there := p.stream(t)
		ways[i%len(ways)](here, there)
	}
	streamsWaitForAPlace(t, p) // all places are there
}

func aCallEndsWithItsContext(t *testing.T, p *pair) {
	why := errors.New("because")
	ctx, cancel := context.WithCancelCause(p.ctx)
	calls := []func() error{
		func() error { _, err := p.a.AcceptStream(ctx); return err },
		func() error { _, err := p.a.AcceptReceiveStream(ctx); return err },
	}
	errs := make(chan error)
	for _, call := range calls {
		go func() { errs <- call() }()
	}
	cancel(why)
	for range calls {
		if err := <-errs; !errors.Is(err, why) {
			t.Errorf("a call with a context that has ended gives %v", err)
		}
	}
}

// The bytes that a Write says it has taken arrive, whatever a Close beside it does.
func closeBesideWriteIsSafe(t *testing.T, p *pair) {
	for range 100 {
		here, there := p.stream(t)
		var wait sync.WaitGroup
		var taken int
		wait.Go(func() { taken, _ = here.Write(make([]byte, 2000)) })
		wait.Go(func() { _ = here.Close() })
		got := must(io.ReadAll(there))(t)
		wait.Wait()
		if len(got) != taken {
			t.Fatalf("%d bytes arrived, %d were taken", len(got), taken)
		}
		end(here, there)
	}
}
