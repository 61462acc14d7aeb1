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

// Where the road is faster than zstd, bytes would wait for that; where it is slow, each byte less is won.
func TestTheRoadSaysHowBytesAreCompressed(t *testing.T) {
	for bandwidth, fast := range map[int]bool{1 << 20: false, 30 << 20: false, 60 << 20: true, 500 << 20: true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer()
			if p.fast() {
				t.Error("a road of which nothing is known is a fast one")
			}
			for range 100 {
				f := p.leaveLocked(leastRun)
				time.Sleep(leastRun * time.Second / time.Duration(bandwidth))
				p.land(f)
			}
			if p.fast() != fast {
				t.Errorf("%d bytes a second: fast is %v", bandwidth, p.fast())
			}
		})
	}
}

func TestCompressionIsUsedWhereItPaysAndBounded(t *testing.T) {
	c := newCoder()
	text := bytes.Repeat([]byte("a line of text\n"), 1000)
	random := make([]byte, mostRun)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	for name, test := range map[string]struct {
		plain []byte
		how   casv1.EncodingV1
		want  casv1.EncodingV1
	}{
		"text":                      {text, casv1.EncodingZstd, casv1.EncodingZstd},
		"text in haste":             {text, casv1.EncodingSnappy, casv1.EncodingSnappy},
		"text for one who does not": {text, casv1.EncodingPlain, casv1.EncodingPlain},
		"noise":                     {random, casv1.EncodingZstd, casv1.EncodingPlain},
		"noise in haste":            {random, casv1.EncodingSnappy, casv1.EncodingPlain},
		"nothing but zeros":         {make([]byte, mostRun), casv1.EncodingZstd, casv1.EncodingZstd},
		"zeros in haste":            {make([]byte, mostRun), casv1.EncodingSnappy, casv1.EncodingSnappy},
		"too little":                {make([]byte, leastCoded-1), casv1.EncodingZstd, casv1.EncodingPlain},
		"text before noise":         {append(bytes.Repeat([]byte("text"), sample/4), random[:200<<10]...), casv1.EncodingZstd, casv1.EncodingPlain},
	} {
		b, got := c.encode(test.plain, make([]byte, 0, roomFor(len(test.plain))), test.how, &choice{})
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
		if err := c.decode(got, back, b); err != nil || !bytes.Equal(back, test.plain) {
			t.Errorf("%s: %v", name, err)
		}
		for _, n := range []int{len(back) - 1, len(back) + 1, 0} {
			if c.decode(got, make([]byte, n), b) == nil {
				t.Errorf("%s: decoded into %d of %d bytes", name, n, len(back))
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	c := newCoder()
	for _, how := range []casv1.EncodingV1{casv1.EncodingZstd, casv1.EncodingSnappy} {
		b, _ := c.encode(make([]byte, 4096), nil, how, &choice{})
		f.Add(uint8(how), b, uint16(4096))
	}
	f.Fuzz(func(t *testing.T, how uint8, b []byte, n uint16) {
		room := make([]byte, int(n)+8)
		for i := range room[n:] {
			room[int(n)+i] = 0xa5
		}
		_ = c.decode(casv1.EncodingV1(how), room[:n], b)
		if !bytes.Equal(room[n:], bytes.Repeat([]byte{0xa5}, 8)) {
			t.Error("it wrote beyond its room")
		}
	})
}
