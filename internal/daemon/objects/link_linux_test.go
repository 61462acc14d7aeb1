package objects_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
)

// over connects an agent with the world's store, as the daemon's edge to the agents does.
func (w *world) over(runner forge.RunnerID) (*remote.Client, *remote.Server) {
	w.t.Helper()
	peer := transport.Peer{ALPN: protocol.ALPNAgent}
	a, d := inmem.Pair(inmem.Limits{}, peer, peer)
	var daemon *link.Link
	answered := make(chan error, 1)
	go func() {
		var err error
		daemon, err = link.Answer(w.t.Context(), d, link.Config{})
		answered <- err
	}()
	agent, err := link.Connect(w.t.Context(), a, link.Config{Role: protocol.RoleAgent}, ident.New[forge.AgentSessionID]())
	w.must(errors.Join(err, <-answered))
	for _, m := range []forge.Message{
		&forge.RegistrationAccepted{ServerTime: 1, Transport: ident.New[forge.TransportSessionID](), Policy: forge.DefaultLeasePolicy()},
		&forge.ResyncReply{Nonce: 1},
	} {
		w.must(daemon.Send(w.t.Context(), forge.Frame{ID: ident.New[forge.MessageID](), Body: m}))
		_, err := agent.Receive(w.t.Context())
		w.must(err)
	}
	server := remote.NewServer(remote.ServerConfig{})
	var serving sync.WaitGroup
	serving.Go(func() { w.serve(server.Connection(daemon), daemon, runner) })
	w.t.Cleanup(func() {
		agent.Close(forge.CloseNormal)
		daemon.Close(forge.CloseNormal)
		serving.Wait()
	})
	return remote.New(remote.ClientConfig{Link: func(context.Context) (*link.Link, error) { return agent, nil }}), server
}

func (w *world) serve(conn *remote.Connection, l *link.Link, runner forge.RunnerID) {
	var streams sync.WaitGroup
	defer streams.Wait()
	for {
		in, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		streams.Go(func() {
			head := in.Head.(*casv1.StreamHeaderV1)
			scope, err := w.Admit(l.Context(), runner, forge.AttemptID{ULID: head.Attempt}, forge.LeaseID{ULID: head.Lease})
			switch {
			case errors.Is(err, remote.ErrStale):
				in.Reset(protocol.ResetStaleLease)
			case err != nil:
				in.Reset(protocol.ResetNotFound)
			default:
				_ = conn.Serve(l.Context(), in, scope) // it says so to the peer
			}
		})
	}
}

// 09§300: over the wire too, a runner cannot find out what exists; another runner's attempt is as good as none.
func TestOverALinkRandomDigestsAndForbiddenOnesAreTheSame(t *testing.T) {
	w := newWorld(t)
	secret := put(t, w.Project("theirs"), castest.Bytes(1, 5000))
	same := put(t, w.Project("app"), castest.Bytes(2, 5000))
	l := w.running("app", output)
	client, server := w.over(l.Runner)
	var said []string
	for _, ref := range []digest.Ref{secret, same, digest.RefOf(castest.Bytes(3, 5000))} {
		_, err := client.For(l.of).Open(t.Context(), ref)
		if !errors.Is(err, cas.ErrNotFound) {
			t.Errorf("%v", err)
		}
		said = append(said, strings.ReplaceAll(err.Error(), ref.String(), ""))
	}
	if said[0] != said[1] || said[1] != said[2] || server.Figures().Sent != 0 {
		t.Errorf("%q, and %d bytes were sent", said, server.Figures().Sent)
	}
	other := w.running("theirs", output)
	if _, err := client.For(other.of).Missing(t.Context(), []digest.Ref{secret}); !errors.Is(err, cas.ErrNotFound) {
		t.Errorf("in the name of another runner's attempt: %v", err)
	}
	w.end(l)
	w.restart()
	if _, err := client.For(l.of).Missing(t.Context(), []digest.Ref{secret}); !errors.Is(err, remote.ErrStale) {
		t.Errorf("after the lease: %v", err)
	}
}

// The disk fills in the middle of an upload. Once there is room again, it goes on by itself.
func TestAnUploadWaitsForADiskThatIsFull(t *testing.T) {
	castest.OnSmallDisk(t, 24<<20, func(t *testing.T, dir string) {
		rows, err := store.Open(t.Context(), t.TempDir(), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, dir: filepath.Join(dir, "cas"), rows: rows}
		w.open()
		defer func() { w.must(errors.Join(w.Objects.Close(), rows.Close())) }()
		t.Run("upload", func(t *testing.T) {
			w.t = t
			ballast := filepath.Join(dir, "ballast")
			w.must(os.WriteFile(ballast, make([]byte, 16<<20), 0o600))
			l := w.running("app", output)
			client, server := w.over(l.Runner)
			large, small := castest.Bytes(1, 12<<20), castest.Bytes(2, 1000)
			src := castest.NewMemory()
			refs := []digest.Ref{src.Add(large), src.Add(small)}
			done := make(chan error, 1)
			go func() { done <- client.For(l.of).CopyFrom(t.Context(), src, refs) }()
			for server.Figures().Resets == 0 { // the first try that the disk has ended
				if err := t.Context().Err(); err != nil {
					t.Fatal(err)
				}
			}
			if s, err := w.Stat(t.Context()); err != nil || s.Bytes >= 12<<20 {
				t.Errorf("%+v, %v", s, err)
			}
			w.must(os.Remove(ballast))
			w.must(<-done)
			castest.Holds(t, w.Project("app"), refs[0], large)
			castest.Holds(t, w.Project("app"), refs[1], small)
			if again := int(client.Figures().Sent) - len(large) - len(small); again > 16<<20 {
				t.Errorf("%d bytes were sent again", again)
			}
		})
	})
}

// A disk that has filled up since it was last looked at is full for the note of whose an object is as for the object.
func TestAnUploadThatBeginsOnAFullDiskIsToldSo(t *testing.T) {
	castest.OnSmallDisk(t, 8<<20, func(t *testing.T, dir string) {
		rows, err := store.Open(t.Context(), t.TempDir(), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, dir: filepath.Join(dir, "cas"), rows: rows}
		w.open()
		defer func() { w.must(errors.Join(w.Objects.Close(), rows.Close())) }()
		put(t, w.Project("app"), castest.Bytes(1, 1000))
		ballast := filepath.Join(dir, "ballast")
		if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the disk is not full: %v", err)
		}
		large := castest.Bytes(2, 3<<20)
		if _, err := w.Project("app").Part(t.Context(), digest.RefOf(large), nil); !errors.Is(err, cas.ErrFull) {
			t.Errorf("%v", err)
		}
		if left, err := os.ReadDir(filepath.Join(w.dir, "owners")); err != nil || len(left) > 0 {
			t.Errorf("%v, %v is left", err, left)
		}
	})
}

func TestAJobsWholeWayOverALink(t *testing.T) {
	w := newWorld(t)
	source, _ := castest.Tree(t, w.Project("app"), map[string]string{"src/main.go": "package main", "run*": "#!/bin/sh"})
	l := w.running("app", func(s *forge.JobSpec) { input(source)(s); output(s) })
	client, _ := w.over(l.Runner)
	here := castest.NewMemory()
	w.must(cas.Fetch(t.Context(), here, client.For(l.of), source))
	if got := castest.Paths(t, here, source); got["src/main.go"] != "package main" {
		t.Errorf("%v", got)
	}
	made, _ := castest.Tree(t, here, map[string]string{"bin/app*": string(castest.Bytes(1, 3<<20)), "src": "x"})
	var refs []digest.Ref
	refs = append(refs, here.Refs()...)
	w.must(cas.Copy(t.Context(), client.For(l.of), here, refs))
	w.must(w.Deliver(t.Context(), l.of, []forge.OutputRef{{Ref: made.Root, Tree: true}}))
	if err := w.CheckTree(t.Context(), "app", made); err != nil {
		t.Error(err)
	}
	if err := client.For(l.of).Put(t.Context(), digest.RefOf([]byte("x")), bytes.NewReader([]byte("x"))); err != nil {
		t.Error(err)
	}
}
