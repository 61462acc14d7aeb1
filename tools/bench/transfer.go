//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
)

// transferBytes is the object that is moved.
const transferBytes = 256 << 20

// uploadFigure is how fast an agent's half of the transfer brings an object that nothing compresses into the daemon's store:
// until the daemon has said that it is there, which means verified and on the disk. The daemon is a process of its own, and so
// is the server of the limit.
var uploadFigure = figure{
	name: "cas.upload", unit: "MB/s", limitIs: "as many bytes on one stream of bare QUIC to a process that drops them",
	begin: func(ctx context.Context, _ options) (pair, error) {
		return beginTransfer(ctx, transferBytes, noise, false)
	},
}

// downloadFigure is the way back: from the daemon's store into the agent's, which is a cache and flushes nothing.
var downloadFigure = figure{
	name: "cas.download", unit: "MB/s", limitIs: "as many bytes on one stream of bare QUIC to a process that drops them",
	begin: func(ctx context.Context, _ options) (pair, error) {
		return beginTransfer(ctx, transferBytes, noise, true)
	},
}

// compressibleFigure is an upload of Go's own sources, one after the other, against the same bytes as they are.
var compressibleFigure = figure{
	name: "cas.compressible", unit: "MB/s", limitIs: "as many bytes on one stream of bare QUIC to a process that drops them",
	begin: func(ctx context.Context, _ options) (pair, error) {
		return beginTransfer(ctx, transferBytes, sources, false)
	},
}

// noise returns bytes that nothing compresses.
func noise(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := rand.NewChaCha8([32]byte{1}).Read(b)
	return b, err
}

// sources returns Go's sources behind each other, as often as it takes.
func sources(n int) ([]byte, error) {
	b := make([]byte, 0, n)
	//lint:ignore SA1019 the bench runs where it was built
	err := filepath.WalkDir(filepath.Join(runtime.GOROOT(), "src"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		if b = append(b, text...); len(b) >= n {
			return fs.SkipAll
		}
		return err
	})
	if err == nil && len(b) == 0 {
		err = errors.New("the sources of Go are not where it says that they are")
	}
	for err == nil && len(b) < n {
		b = append(b, b[:min(len(b), n-len(b))]...)
	}
	return b[:min(len(b), n)], err
}

// transferYard moves one object again and again. For each upload it is changed, so that the daemon has not got it yet.
type transferYard struct {
	wireYard
	folder string
	object []byte
	count  uint64

	source forge.TreeRef // a tree with the object in it that downloads fetch
	ref    digest.Ref
}

func beginTransfer(ctx context.Context, size int, content func(int) ([]byte, error), down bool) (_ pair, err error) {
	y := &transferYard{}
	defer func() {
		if err != nil {
			y.close()
		}
	}()
	if y.object, err = content(size); err != nil {
		return pair{}, err
	}
	if y.folder, err = os.MkdirTemp("", "fybench"); err != nil {
		return pair{}, err
	}
	if err := y.begin(ctx, 1); err != nil {
		return pair{}, err
	}
	p := pair{ours: y.upload, limit: y.bulk(size), end: y.close}
	if down {
		p.ours = y.download
		err = y.provide(ctx)
	}
	return p, err
}

func (y *transferYard) close() {
	y.wireYard.close()
	_ = os.RemoveAll(y.folder)
}

// change makes another object of the object, and returns its name.
func (y *transferYard) change() digest.Ref {
	y.count++
	binary.LittleEndian.PutUint64(y.object, y.count)
	return digest.RefOf(y.object)
}

// Open implements cas.Source, as a store does that has read the object before: it need not be hashed again.
func (y *transferYard) Open(context.Context, digest.Ref) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(y.object)), nil
}

// provide gives the project a tree with the object in it.
func (y *transferYard) provide(ctx context.Context) error {
	project := y.client.Objects(forge.DefaultProject)
	y.ref = y.change()
	if err := project.CopyFrom(ctx, y, []digest.Ref{y.ref}); err != nil {
		return err
	}
	var b tree.Builder
	if err := b.Add("object", tree.Entry{Kind: tree.File, Ref: y.ref}); err != nil {
		return err
	}
	var err error
	y.source, _, err = b.Build(func(ref digest.Ref, encoded []byte) error {
		return project.Put(ctx, ref, bytes.NewReader(encoded))
	})
	return err
}

// attempt runs something in the name of an attempt, as its agent.
func (y *transferYard) attempt(ctx context.Context, edit func(*api.JobSpec), do func(context.Context, *remote.Store) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := y.agent.connect(ctx, y.fleet.Daemon.Endpoint(), ableTo(1)); err != nil {
		return err
	}
	attempts, err := y.agent.take(ctx, y.client, 1, edit)
	if err != nil {
		return fmt.Errorf("take a job: %w", err)
	}
	client := remote.New(remote.ClientConfig{Link: func(context.Context) (*link.Link, error) { return y.agent.link, nil }})
	if err := do(ctx, client.For(attempts[0])); err != nil {
		return err
	}
	if err := y.agent.say(ctx, &forge.LogFinal{Context: attempts[0]}); err != nil { // it has printed nothing
		return err
	}
	if _, err := hear[*forge.LogFinalAck](ctx, y.agent); err != nil {
		return err
	}
	return y.agent.complete(ctx, attempts, forge.LogSeal{})
}

// withOutput lets a job leave as much as is moved here.
func withOutput(s *api.JobSpec) { s.Outputs = []api.Output{{Name: "object", Patterns: []string{"**"}}} }

func (y *transferYard) upload(ctx context.Context) (speed float64, err error) {
	ref := y.change()
	return speed, y.attempt(ctx, withOutput, func(ctx context.Context, far *remote.Store) error {
		begun := time.Now()
		err := cas.Copy(ctx, far, y, []digest.Ref{ref})
		speed = megabytes(ref.Bytes, time.Since(begun))
		return err
	})
}

func (y *transferYard) download(ctx context.Context) (speed float64, err error) {
	input := func(s *api.JobSpec) {
		s.Inputs = []api.Input{{Mount: forge.SourceDir, Mode: "ro", Tree: api.Tree{
			Root: y.source.Root.String(), Files: y.source.Files, Bytes: api.Size(y.source.Bytes), Depth: y.source.Depth,
		}}}
	}
	return speed, y.attempt(ctx, input, func(ctx context.Context, far *remote.Store) error {
		near, err := disk.Open(filepath.Join(y.folder, "near"), disk.Options{Evict: true})
		if err != nil {
			return err
		}
		begun := time.Now()
		err = cas.Copy(ctx, near, far, []digest.Ref{y.ref})
		speed = megabytes(y.ref.Bytes, time.Since(begun))
		return errors.Join(err, near.Close(), os.RemoveAll(filepath.Join(y.folder, "near")))
	})
}
