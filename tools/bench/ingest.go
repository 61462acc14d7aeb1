//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
)

// What is sent: by each of ingestLogs attempts ingestFrames frames of the largest size, ingestBatch in one write.
const (
	ingestLogs   = 8
	ingestFrames = 512
	ingestBatch  = 4
	ingestBytes  = ingestLogs * ingestFrames * forge.MaxLogPayload
)

// ingestFigure is how fast a daemon takes the logs of several attempts at once: from the first byte until every frame is
// acknowledged, which means on the disk, and every log is sealed. The daemon is a process of its own, and so is the server
// of the limit. The sender is scripted: what an agent does before a frame is on the road is log.spool's to measure.
var ingestFigure = figure{
	name: "log.ingest", unit: "MB/s", limitIs: "as many bytes on one stream of bare QUIC to a process that drops them",
	begin: func(ctx context.Context, _ options) (pair, error) {
		y := &ingestYard{}
		if err := y.begin(ctx); err != nil {
			y.close()
			return pair{}, err
		}
		return pair{ours: y.logs, limit: y.bulk(ingestBytes), end: y.close}, nil
	},
}

// ingestYard has what a log consists of.
type ingestYard struct {
	wireYard
	payload []byte
	seal    forge.LogSeal
}

func (y *ingestYard) begin(ctx context.Context) error {
	line := []byte("a line of a log, about as long as they are when a compiler speaks\n")
	y.payload = bytes.Repeat(line, forge.MaxLogPayload/len(line)+1)[:forge.MaxLogPayload]
	y.seal = forge.LogSeal{
		Last: ingestFrames, Bytes: ingestFrames * forge.MaxLogPayload, Hash: digest.Of(bytes.Repeat(y.payload, ingestFrames)),
	}
	return y.wireYard.begin(ctx, ingestLogs)
}

// logs takes as many jobs as there are logs, and measures while their logs are on their way.
func (y *ingestYard) logs(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := y.agent.connect(ctx, y.fleet.Daemon.Endpoint(), ableTo(ingestLogs)); err != nil {
		return 0, err
	}
	attempts, err := y.agent.take(ctx, y.client, ingestLogs, func(*api.JobSpec) {})
	if err != nil {
		return 0, fmt.Errorf("take jobs: %w", err)
	}
	begun := time.Now()
	if err := y.send(ctx, attempts); err != nil {
		return 0, fmt.Errorf("send logs: %w", err)
	}
	speed := megabytes(ingestBytes, time.Since(begun))
	return speed, y.agent.complete(ctx, attempts, y.seal)
}

// send writes every log on a stream of its own, and returns when all are sealed.
func (y *ingestYard) send(ctx context.Context, attempts []forge.AttemptContext) error {
	work, workCtx := errgroup.WithContext(ctx)
	for _, c := range attempts {
		work.Go(func() error { return y.sendLog(workCtx, c) })
	}
	work.Go(func() error { return y.sealed(workCtx, attempts) })
	return work.Wait()
}

func (y *ingestYard) sendLog(ctx context.Context, c forge.AttemptContext) error {
	l := y.agent.link
	stream, err := l.OpenSend(ctx, protocol.StreamLog, &logv1.StreamHeaderV1{
		Attempt: c.Attempt.ULID, Lease: c.Lease.ULID, First: 1, Encoding: logv1.EncodingPlain,
	})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { stream.Reset(protocol.ResetCancelled) })
	defer stop()
	var b []byte
	for seq := 1; seq <= ingestFrames; seq++ {
		frame := logv1.NewLogFrame(forge.LogFrame{
			Seq: forge.LogSeq(seq), Stream: forge.LogStdout, Bytes: y.payload, Time: forge.WallTime(seq),
		})
		if b, err = l.AppendFrame(b, ident.New[forge.MessageID](), forge.MessageID{}, frame); err != nil {
			return err
		}
		if seq%ingestBatch == 0 {
			if _, err := stream.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	return stream.Close()
}

// sealed seals each log once it is acknowledged to its end.
func (y *ingestYard) sealed(ctx context.Context, attempts []forge.AttemptContext) error {
	of := map[forge.AttemptID]forge.AttemptContext{}
	for _, c := range attempts {
		of[c.Attempt] = c
	}
	for left := len(attempts); left > 0; {
		got, err := y.agent.link.Receive(ctx)
		if err != nil {
			return err
		}
		switch m := got.Domain.(type) {
		case *forge.LogAck:
			if m.Next == ingestFrames+1 {
				err = y.agent.say(ctx, &forge.LogFinal{Context: of[m.Attempt], Seal: y.seal})
			}
		case *forge.LogFinalAck:
			left--
		case *forge.Error:
			err = fmt.Errorf("the daemon says: %s", m.Text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
