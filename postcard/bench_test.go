package postcard_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/postcard"
)

// Look-alikes of the two messages that decide what the control stream costs: the one that starts
// a job, and the one every runner sends every few seconds.
type (
	benchID [16]byte

	benchOffer struct {
		Protocol    struct{ Major, Minor uint16 }
		MessageID   benchID
		Correlation *benchID
		SentAt      int64
		Lease       benchID
		Attempt     benchID
		Job         benchID
		Generation  uint64
		ExpiresAt   int64
		SpecID      [32]byte
		Spec        struct {
			Inline *[]byte   `postcard:"=0,max=49152"`
			Object *benchRef `postcard:"=1"`
		}
		Inputs []benchRef `postcard:"max=64"`
		Env    []benchEnv `postcard:"max=64"`
	}

	benchRef struct {
		Digest [32]byte
		Size   uint64
	}

	benchEnv struct {
		Name  string `postcard:"max=128"`
		Value string `postcard:"max=1024"`
	}

	benchHeartbeat struct {
		Protocol  struct{ Major, Minor uint16 }
		MessageID benchID
		SentAt    int64
		Runner    benchID
		Session   benchID
		Attempts  []benchAttempt `postcard:"max=256"`
		Digest    [32]byte
		Resources struct {
			MilliCPU, FreeMilliCPU      uint32
			Memory, FreeMemory, DiskFre uint64
			Pressure                    uint32
		}
	}

	benchAttempt struct {
		Attempt benchID
		Lease   benchID
		Phase   uint32
		LastLog *uint64
	}
)

func benchmarkOffer() *benchOffer {
	o := &benchOffer{SentAt: 1767225600123, Generation: 7, ExpiresAt: 1767225660123, Correlation: &benchID{9}}
	o.Spec.Object = &benchRef{Size: 48 << 10}
	o.Inputs = make([]benchRef, 8)
	o.Env = []benchEnv{{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"CI", "true"}, {"HOME", "/home/runner"}}
	return o
}

func benchmarkHeartbeat() *benchHeartbeat {
	h := &benchHeartbeat{SentAt: 1767225600123, Attempts: make([]benchAttempt, 50)}
	for i := range h.Attempts {
		sequence := uint64(i * 1000)
		h.Attempts[i] = benchAttempt{Attempt: benchID{byte(i)}, Phase: 2, LastLog: &sequence}
	}
	h.Resources.Memory, h.Resources.FreeMemory = 64<<30, 13<<30
	return h
}

func BenchmarkLeaseOffer(b *testing.B)  { benchmark(b, benchmarkOffer()) }
func BenchmarkHeartbeat50(b *testing.B) { benchmark(b, benchmarkHeartbeat()) }

func benchmark[T any](b *testing.B, v *T) {
	wire, err := postcard.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(wire)))
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("Marshal", func() error { _, err := postcard.Marshal(v); return err })
	buf := make([]byte, 0, len(wire))
	run("Append", func() error { _, err := postcard.Append(buf, v); return err })
	run("Unmarshal", func() error { var back T; return postcard.Unmarshal(wire, &back) })
}
