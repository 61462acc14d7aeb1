package remote_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport/transporttest"
)

// most is how much may be sent again for each cut.
const most = 8 << 20

// cutting returns a hook that cuts the connection each time that so many bytes more have come, and makes another.
func cutting(w *world, every, times int) (hook func(total int), done func() (cuts int)) {
	signal, over := make(chan struct{}, 1), make(chan struct{})
	next, cuts := every, 0
	var cutter sync.WaitGroup
	cutter.Go(func() {
		for {
			select {
			case <-signal:
				w.mu.Lock()
				now := w.now
				w.mu.Unlock()
				now.cut()
				cuts++
				w.connect()
			case <-over:
				return
			}
		}
	})
	var mu sync.Mutex
	hook = func(total int) {
		mu.Lock()
		defer mu.Unlock()
		if total >= next && times > 0 {
			next, times = total+every, times-1
			signal <- struct{}{}
		}
	}
	return hook, func() int {
		close(over)
		cutter.Wait()
		return cuts
	}
}

// Threat S22 and claim 09§234: what a cut interrupts goes on from what the receiver holds.
func TestALargeUploadThatIsCutSendsLittleTwice(t *testing.T) {
	everyRoad(t, func(t *testing.T, r road) {
		o := noise(1, 40<<20)
		theirs := newShelf()
		w := newWorld(t, r, theirs)
		w.connect()
		var done func() int
		theirs.written, done = cutting(w, 7<<20, 4)
		if err := w.store().CopyFrom(t.Context(), newShelf(o), refsOf([][]byte{o})); err != nil {
			t.Fatal(err)
		}
		cuts := done()
		if !theirs.has(o) {
			t.Error("it did not arrive")
		}
		again := int(w.client.Figures().Sent) - len(o)
		if cuts < 3 || again > cuts*most {
			t.Errorf("%d bytes were sent again after %d cuts", again, cuts)
		}
	})
}

// counting counts the bytes that come.
type counting struct {
	io.Reader
	hook  func(int)
	total int
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.total += n
	c.hook(c.total)
	return n, err
}

func TestALargeDownloadThatIsCutSendsLittleTwice(t *testing.T) {
	everyRoad(t, func(t *testing.T, r road) {
		o := noise(1, 40<<20)
		w := newWorld(t, r, newShelf(o))
		w.connect()
		hook, done := cutting(w, 7<<20, 4)
		rc, err := w.store().Open(t.Context(), digest.RefOf(o))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(&counting{Reader: rc, hook: hook})
		cuts := done()
		if err := errors.Join(err, rc.Close()); err != nil || !bytes.Equal(got, o) {
			t.Errorf("%d bytes: %v", len(got), err)
		}
		again := int(w.server.Figures().Sent) - len(o)
		if cuts < 3 || again > cuts*most {
			t.Errorf("%d bytes were sent again after %d cuts", again, cuts)
		}
	})
}

// A download into a disk's part is taken up by another process too.
func TestADownloadGoesOnInAnotherProcess(t *testing.T) {
	o := noise(1, 24<<20)
	ref := digest.RefOf(o)
	w := newWorld(t, inMemory, newShelf(o))
	w.connect()
	dir := t.TempDir()
	open := func() *disk.Store {
		s, err := disk.Open(dir, disk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := open()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.scope.(*shelf).given = func(total int) {
		if total >= 12<<20 {
			cancel()
		}
	}
	if err := w.store().CopyTo(ctx, first, []digest.Ref{ref}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open()
	if err := w.store().CopyTo(t.Context(), second, []digest.Ref{ref}); err != nil {
		t.Fatal(err)
	}
	if again := int(w.server.Figures().Sent) - len(o); again > most {
		t.Errorf("%d bytes were sent again", again)
	}
	if missing, err := second.Missing(t.Context(), []digest.Ref{ref}); err != nil || len(missing) > 0 {
		t.Errorf("missing: %v, %v", missing, err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

func TestManySmallObjectsSurviveCuts(t *testing.T) {
	everyRoad(t, func(t *testing.T, r road) {
		var objects [][]byte
		for i := range 3000 {
			objects = append(objects, noise(uint64(i), 100+i*3))
		}
		theirs := newShelf()
		w := newWorld(t, r, theirs)
		w.connect()
		n := 0
		hook, done := cutting(w, 500, 4)
		theirs.fails = func() error { n++; hook(n); return nil }
		if err := w.store().CopyFrom(t.Context(), newShelf(objects...), refsOf(objects)); err != nil {
			t.Fatal(err)
		}
		cuts := done()
		mine := newShelf()
		n = 0
		hook, done = cutting(w, 500, 4)
		mine.fails = func() error { n++; hook(n); return nil }
		if err := w.store().CopyTo(t.Context(), mine, refsOf(objects)); err != nil {
			t.Fatal(err)
		}
		if cuts += done(); cuts < 4 {
			t.Errorf("%d cuts", cuts)
		}
		if len(theirs.objects) != len(objects) || len(mine.objects) != len(objects) {
			t.Errorf("%d went up and %d down, of %d", len(theirs.objects), len(mine.objects), len(objects))
		}
	})
}

// A connection that is half open says nothing of it. Somebody has to lose patience.
func TestAHalfOpenConnectionIsLeftForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := [][]byte{noise(1, 1000), noise(2, 3<<20)}
		theirs := newShelf()
		var agents []*transporttest.Faulty
		w := newWorld(t, inMemory, theirs, func(w *world) {
			w.wrap = func(e transporttest.Ends) transporttest.Ends {
				f := transporttest.Wrap(e.Dialled, transporttest.Faults{})
				agents = append(agents, f)
				e.Dialled = f
				return e
			}
		})
		first := w.connect()
		agents[0].Vanish()
		go func() {
			time.Sleep(20 * time.Second)
			w.connect()
		}()
		if err := w.store().CopyFrom(t.Context(), newShelf(objects...), refsOf(objects)); err != nil {
			t.Error(err)
		}
		for _, o := range objects {
			if !theirs.has(o) {
				t.Errorf("%d bytes are missing", len(o))
			}
		}
		first.ends.Accepted.Close(0)
		first.close()
	})
}

func TestABadRoadLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := corpus()
		theirs := newShelf()
		w := newWorld(t, inMemory, theirs, func(w *world) {
			w.wrap = func(e transporttest.Ends) transporttest.Ends {
				bad := transporttest.Faults{
					Latency: 30 * time.Millisecond, BytesPerSecond: 2 << 20,
					Skew: func(n int) time.Duration { return time.Duration(n*37%11) * 10 * time.Millisecond },
				}
				return transporttest.Ends{Dialled: transporttest.Wrap(e.Dialled, bad), Accepted: transporttest.Wrap(e.Accepted, bad)}
			}
		})
		w.connect()
		if err := w.store().CopyFrom(t.Context(), newShelf(objects...), refsOf(objects)); err != nil {
			t.Error(err)
		}
		mine := newShelf()
		if err := w.store().CopyTo(t.Context(), mine, refsOf(objects)); err != nil {
			t.Error(err)
		}
		for _, o := range objects {
			if !theirs.has(o) || !mine.has(o) {
				t.Errorf("%d bytes are missing", len(o))
			}
		}
		w.close()
	})
}

// On a road of 1 MiB/s that does not know priorities, a control message waits behind whatever is on its way. So little may be.
func TestControlStaysFastUnderFourBulkTransfers(t *testing.T) {
	for _, way := range []string{"up", "down"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { controlUnder(t, way == "up") })
		})
	}
}

func controlUnder(t *testing.T, up bool) {
	var objects [][]byte
	for i := range 4 {
		objects = append(objects, noise(uint64(i), 4<<20))
	}
	theirs, mine := newShelf(), newShelf(objects...)
	if !up {
		theirs, mine = mine, theirs
	}
	w := newWorld(t, inMemory, theirs, func(w *world) {
		w.wrap = func(e transporttest.Ends) transporttest.Ends {
			narrow := transporttest.Faults{Latency: 5 * time.Millisecond, BytesPerSecond: 1 << 20}
			return transporttest.Ends{Dialled: transporttest.Wrap(e.Dialled, narrow), Accepted: transporttest.Wrap(e.Accepted, narrow)}
		}
	})
	p := w.connect()
	var bulk sync.WaitGroup
	for _, o := range objects {
		bulk.Go(func() {
			var err error
			if up {
				err = w.store().CopyFrom(t.Context(), mine, refsOf([][]byte{o}))
			} else {
				err = w.store().CopyTo(t.Context(), mine, refsOf([][]byte{o}))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	worst := time.Duration(0)
	for range 60 {
		time.Sleep(200 * time.Millisecond) // of the bubble's clock
		at := time.Now()
		ping(t, p)
		worst = max(worst, time.Since(at))
	}
	bulk.Wait()
	if worst > 300*time.Millisecond {
		t.Errorf("a control message took %v", worst)
	}
	w.close()
}

// ping sends a control message each way.
func ping(t *testing.T, p *pair) {
	t.Helper()
	if err := p.agent.Send(t.Context(), heartbeat()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.daemon.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.daemon.Send(t.Context(), forge.Frame{ID: ident.New[forge.MessageID](), Body: &forge.HeartbeatAck{Nonce: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.agent.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func heartbeat() forge.Frame {
	return forge.Frame{ID: ident.New[forge.MessageID](), Body: &forge.Heartbeat{
		Runner: forge.RunnerID{ULID: forge.ULID{1}}, Session: forge.AgentSessionID{ULID: forge.ULID{2}}, Nonce: 1,
	}}
}

// Peers that know neither range states nor compression still get everything, from its start each time.
func TestWithoutItsFeaturesEverythingStillGoes(t *testing.T) {
	objects := corpus()
	theirs := newShelf()
	w := newWorld(t, inMemory, theirs, func(w *world) {
		w.mine = link.Config{Terms: protocol.Terms{Versions: protocol.OwnTerms().Versions}}
	})
	w.connect()
	var done func() int
	theirs.written, done = cutting(w, 2<<20, 2)
	if err := w.store().CopyFrom(t.Context(), newShelf(objects...), refsOf(objects)); err != nil {
		t.Fatal(err)
	}
	done()
	mine := newShelf()
	if err := w.store().CopyTo(t.Context(), mine, refsOf(objects)); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if !theirs.has(o) || !mine.has(o) {
			t.Errorf("%d bytes are missing", len(o))
		}
	}
	if f := w.client.Figures(); f.WireSent < f.Sent {
		t.Error("something was compressed")
	}
}

func TestADaemonWithLittleMemoryTakesEverythingInTurn(t *testing.T) {
	var objects [][]byte
	for i := range 40 {
		objects = append(objects, noise(uint64(i), remote.Small))
	}
	theirs := newShelf()
	w := newWorld(t, inMemory, theirs, func(w *world) {
		w.server = remote.NewServer(remote.ServerConfig{Memory: 3 << 20})
	})
	w.connect()
	var uploads sync.WaitGroup
	for _, o := range objects {
		uploads.Go(func() {
			if err := w.store().Put(t.Context(), digest.RefOf(o), bytes.NewReader(o)); err != nil {
				t.Error(err)
			}
		})
	}
	uploads.Wait()
	if len(theirs.objects) != len(objects) {
		t.Errorf("%d objects came", len(theirs.objects))
	}
}
