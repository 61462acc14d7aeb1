package remote

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
)

// flow sends for a while over a road with a bandwidth and a delay, and returns what was on its way at most in the second half.
func flow(t *testing.T, bandwidth int, delay, span time.Duration) (most, sent int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPacer()
		free := time.Now() // when the road is through with what it was given
		end := time.Now().Add(span)
		half := time.Now().Add(span / 2)
		for time.Now().Before(end) {
			n := p.run()
			f, err := p.admit(t.Context(), n, func() bool { return false })
			if err != nil {
				t.Fatal(err)
			}
			sent += n
			if time.Now().After(half) {
				most = max(most, p.flying)
			}
			if now := time.Now(); free.Before(now) {
				free = now
			}
			free = free.Add(time.Duration(n) * time.Second / time.Duration(bandwidth))
			time.AfterFunc(time.Until(free)+delay, func() { p.land(f) })
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		if p.flying != 0 {
			t.Errorf("%d bytes are still on their way", p.flying)
		}
	})
	return most, sent
}

func TestWhatIsOnItsWayStaysNearWhatTheRoadHolds(t *testing.T) {
	for _, road := range []struct {
		bandwidth int
		delay     time.Duration
	}{
		{1 << 20, 5 * time.Millisecond},
		{1 << 20, 100 * time.Millisecond},
		{10 << 20, 50 * time.Millisecond},
		{100 << 20, time.Millisecond},
	} {
		most, sent := flow(t, road.bandwidth, road.delay, 20*time.Second)
		holds := float64(road.bandwidth) * road.delay.Seconds()
		bound := max(leastWindow, 3*holds, holds+1.5*float64(road.bandwidth)*slack.Seconds()) + leastRun
		if float64(most) > bound {
			t.Errorf("%+v: %d bytes on their way, the road holds %.0f", road, most, holds)
		}
		if used := float64(sent) / (20 * float64(road.bandwidth)); used < 0.8 {
			t.Errorf("%+v: %.0f %% of the road is used", road, 100*used)
		}
	}
}

func TestCompressionIsUsedWhereItPaysAndBounded(t *testing.T) {
	c := newCoder()
	random := make([]byte, mostRun)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	for name, test := range map[string]struct {
		plain []byte
		zstd  bool
		want  casv1.EncodingV1
	}{
		"text":                      {bytes.Repeat([]byte("a line of text\n"), 1000), true, casv1.EncodingZstd},
		"text for one who does not": {bytes.Repeat([]byte("a line of text\n"), 1000), false, casv1.EncodingPlain},
		"noise":                     {random, true, casv1.EncodingPlain},
		"nothing but zeros":         {make([]byte, mostRun), true, casv1.EncodingZstd},
		"too little":                {make([]byte, leastZstd-1), true, casv1.EncodingPlain},
		"text before noise":         {append(bytes.Repeat([]byte("text"), sampleZstd/4), random[:200<<10]...), true, casv1.EncodingPlain},
	} {
		b, got := c.encode(test.plain, nil, &choice{zstd: test.zstd})
		if got != test.want {
			t.Errorf("%s: %v", name, got)
		}
		if got == casv1.EncodingPlain {
			if !bytes.Equal(b, test.plain) {
				t.Errorf("%s: other bytes", name)
			}
			continue
		}
		if len(b) < len(test.plain)/casv1.MaxRatio {
			t.Errorf("%s: %d bytes stand for %d", name, len(b), len(test.plain))
		}
		back := make([]byte, len(test.plain))
		if err := c.decode(back, b); err != nil || !bytes.Equal(back, test.plain) {
			t.Errorf("%s: %v", name, err)
		}
		for _, n := range []int{len(back) - 1, len(back) + 1, 0} {
			if c.decode(make([]byte, n), b) == nil {
				t.Errorf("%s: decoded into %d of %d bytes", name, n, len(back))
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	c := newCoder()
	b, _ := c.encode(make([]byte, 4096), nil, &choice{zstd: true})
	f.Add(b, uint16(4096))
	f.Fuzz(func(t *testing.T, b []byte, n uint16) {
		room := make([]byte, int(n)+8)
		for i := range room[n:] {
			room[int(n)+i] = 0xa5
		}
		_ = c.decode(room[:n], b)
		if !bytes.Equal(room[n:], bytes.Repeat([]byte{0xa5}, 8)) {
			t.Error("it wrote beyond its room")
		}
	})
}
