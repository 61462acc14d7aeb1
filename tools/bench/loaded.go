//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/transport/quic/bare"
)

// How much is under way while control messages are timed. The figure is taken until the first transfer is through.
const (
	loadedTransfers = 4
	loadedBytes     = 96 << 20 // each
)

// loadedFigure is the slowest in a hundred of an agent's heartbeats, from its writing until its answer was read, while the same
// connection brings four objects to the daemon's store. The daemon decides about each as it does about those that renew
// leases. The limit has the same road to itself, and the same load: small messages there and back on a stream that goes before
// the others, while four streams bring as many bytes, which are hashed at both ends and written to files.
var loadedFigure = beatsFigure(
	"control.loaded", "64 bytes there and back over bare QUIC on the stream of highest priority, beside four streams of bulk that is hashed at both ends and written to files",
	(*transferYard).bulkToKeep, keeping)

// lightFigure is loadedFigure beside a lighter load: nobody hashes or writes what the limit's streams bring, which leaves it
// more of the processor than any store would.
var lightFigure = beatsFigure(
	"control.light", "the same beside four streams to a process that drops them",
	func(y *transferYard, ctx context.Context) error { return y.bare.Bulk(ctx, bare.Blank(loadedBytes)) })

func beatsFigure(name, limitIs string, bulk func(*transferYard, context.Context) error, settings ...string) figure {
	return figure{
		name: name, unit: "ms", limitIs: limitIs,
		begin: func(ctx context.Context, _ options) (_ pair, err error) {
			y := &transferYard{}
			defer func() {
				if err != nil {
					y.close()
				}
			}()
			if y.object, err = noise(loadedBytes); err != nil {
				return pair{}, err
			}
			if err := y.begin(ctx, 1, settings...); err != nil {
				return pair{}, err
			}
			limit := func(ctx context.Context) (float64, error) {
				return underLoad(ctx,
					func(ctx context.Context, _ int) error { return bulk(y, ctx) },
					func(context.Context) error { return y.bare.Echo(64) })
			}
			return pair{ours: y.beatsUnderLoad, limit: limit, end: y.close}, nil
		},
	}
}

// bulkToKeep brings the object to the bare server as a store's client would: it hashes it on the way.
func (y *transferYard) bulkToKeep(ctx context.Context) error {
	return y.bare.Bulk(ctx, io.TeeReader(bytes.NewReader(y.object), digest.NewHash()))
}

// underLoad times something again and again while transfers run, in milliseconds.
func underLoad(ctx context.Context, transfer func(context.Context, int) error, once func(context.Context) error) (float64, error) {
	through := make(chan struct{}, loadedTransfers)
	var load errgroup.Group
	for i := range loadedTransfers {
		load.Go(func() error {
			defer func() { through <- struct{}{} }()
			return transfer(ctx, i)
		})
	}
	var took []float64
	var err error
	for err == nil && len(through) == 0 {
		begun := time.Now()
		err = once(ctx)
		took = append(took, float64(time.Since(begun))/float64(time.Millisecond))
	}
	if err := errors.Join(err, load.Wait()); err != nil {
		return 0, err
	}
	slices.Sort(took)
	return took[len(took)*99/100], nil
}

func (y *transferYard) beatsUnderLoad(ctx context.Context) (slow float64, err error) {
	var objects [loadedTransfers]prefixed
	var refs [loadedTransfers]digest.Ref
	for i := range objects {
		y.count++
		objects[i] = prefixed{binary.LittleEndian.AppendUint64(nil, y.count), y.object}
		h := digest.NewHash()
		_, _ = io.Copy(h, objects[i].reader()) // neither fails
		refs[i] = h.Ref()
	}
	return slow, y.attempt(ctx, withOutput, func(ctx context.Context, far *remote.Store) error {
		slow, err = underLoad(ctx,
			func(ctx context.Context, i int) error { return cas.Copy(ctx, far, objects[i], []digest.Ref{refs[i]}) },
			y.beat)
		return err
	})
}

// beat is a heartbeat and its answer. No lease is named: those of this yard end soon enough.
func (y *transferYard) beat(ctx context.Context) error {
	y.agent.nonce++
	err := y.agent.say(ctx, &forge.Heartbeat{
		Runner: y.agent.runner, Session: y.agent.session, Nonce: y.agent.nonce, State: forge.AgentOnline,
	})
	if err != nil {
		return err
	}
	_, err = hear[*forge.HeartbeatAck](ctx, y.agent)
	return err
}

// prefixed is an object of two pieces, as a source.
type prefixed struct{ first, rest []byte }

func (p prefixed) reader() io.Reader {
	return io.MultiReader(bytes.NewReader(p.first), bytes.NewReader(p.rest))
}

// Open implements cas.Source.
func (p prefixed) Open(context.Context, digest.Ref) (io.ReadCloser, error) {
	return io.NopCloser(p.reader()), nil
}
