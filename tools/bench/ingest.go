//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/transport/quic/bare"
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
		return pair{ours: y.logs, limit: y.bulk, end: y.close}, nil
	},
}

// ingestYard is a daemon with a scripted agent, and a bare server with a client.
type ingestYard struct {
	fleet    *fleet.Fleet
	endFleet func()
	client   *api.Client
	agent    *scriptedAgent
	server   *bareProcess
	bare     *bare.Client
	payload  []byte
	seal     forge.LogSeal
}

func (y *ingestYard) begin(ctx context.Context) (err error) {
	line := []byte("a line of a log, about as long as they are when a compiler speaks\n")
	y.payload = bytes.Repeat(line, forge.MaxLogPayload/len(line)+1)[:forge.MaxLogPayload]
	y.seal = forge.LogSeal{
		Last: ingestFrames, Bytes: ingestFrames * forge.MaxLogPayload, Hash: digest.Of(bytes.Repeat(y.payload, ingestFrames)),
	}
	if y.server, err = startBare(ctx); err != nil {
		return err
	}
	if y.bare, err = y.server.dial(ctx); err != nil {
		return err
	}
	if y.fleet, y.endFleet, err = newFleet(ctx); err != nil {
		return err
	}
	if y.client, err = y.fleet.Daemon.Client(); err != nil {
		return err
	}
	ca, err := caOf(y.fleet)
	if err != nil {
		return err
	}
	y.agent, err = newScripted(ctx, y.client, ca, "sender", ingestLogs)
	return err
}

func (y *ingestYard) close() {
	if y.agent != nil {
		y.agent.close()
	}
	if y.client != nil {
		y.client.Close()
	}
	if y.endFleet != nil {
		y.endFleet()
	}
	if y.bare != nil {
		y.bare.Close()
	}
	if y.server != nil {
		_ = y.server.close() // its end is asked for, its code means nothing
	}
}

func (y *ingestYard) bulk(ctx context.Context) (float64, error) {
	begun := time.Now()
	if err := y.bare.Bulk(ctx, ingestBytes); err != nil {
		return 0, err
	}
	return megabytes(ingestBytes, time.Since(begun)), nil
}

// logs takes as many jobs as there are logs, and measures while their logs are on their way.
func (y *ingestYard) logs(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	capabilities := forge.Capabilities{
		SchemaVersion: forge.CapabilitySchema, Platform: forge.Platform{OS: "linux", Arch: "amd64"},
		Resources: forge.Resources{CPU: 64_000, Memory: 64 * forge.GiB, Disk: forge.TiB, Slots: ingestLogs},
		Sandboxes: []forge.Sandbox{{Kind: forge.SandboxProcess}}, Features: []string{forge.FeatureHostNetwork},
	}
	if err := y.agent.connect(ctx, y.fleet.Daemon.Endpoint(), capabilities); err != nil {
		return 0, err
	}
	attempts, err := y.take(ctx)
	if err != nil {
		return 0, fmt.Errorf("take jobs: %w", err)
	}
	begun := time.Now()
	if err := y.send(ctx, attempts); err != nil {
		return 0, fmt.Errorf("send logs: %w", err)
	}
	speed := megabytes(ingestBytes, time.Since(begun))
	return speed, y.complete(ctx, attempts)
}

// take submits jobs and accepts them.
func (y *ingestYard) take(ctx context.Context) ([]forge.AttemptContext, error) {
	request := fleet.Shell("true", func(s *api.JobSpec) { s.Sandbox = &api.Sandbox{Kind: "process"} }) // all that the scripted agent has
	job := request.Jobs[0]
	request.Jobs = nil
	for i := range ingestLogs {
		job.Key = fmt.Sprintf("log-%d", i)
		request.Jobs = append(request.Jobs, job)
	}
	if _, err := y.client.Submit(ctx, request, ident.New[forge.MessageID]().String()); err != nil {
		return nil, err
	}
	var attempts []forge.AttemptContext
	for granted := 0; granted < ingestLogs; {
		got, err := y.agent.link.Receive(ctx)
		if err != nil {
			return nil, err
		}
		switch m := got.Domain.(type) {
		case *forge.LeaseOffer:
			attempts = append(attempts, m.Context)
			y.agent.nonce++
			err = y.agent.say(ctx, &forge.LeaseAccept{Context: m.Context, Nonce: y.agent.nonce})
		case *forge.LeaseAcceptAck:
			if granted++; !m.Granted {
				err = errors.New("a lease was not granted")
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return attempts, nil
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

// complete ends the attempts.
func (y *ingestYard) complete(ctx context.Context, attempts []forge.AttemptContext) error {
	for _, c := range attempts {
		done := &forge.Completion{
			Context: c, Message: ident.New[forge.MessageID](), Capture: forge.Succeeded, Log: y.seal,
			Result: forge.Result{Class: forge.Succeeded, Duration: time.Second, Steps: []forge.StepResult{{Class: forge.Succeeded}}},
		}
		done.Hash = done.ResultHash()
		if err := y.agent.link.Send(ctx, forge.Frame{ID: done.Message, Body: done}); err != nil {
			return err
		}
		ack, err := hear[*forge.CompletionAck](ctx, y.agent)
		if err != nil {
			return err
		}
		if ack.Answer != forge.CompletionAccepted {
			return fmt.Errorf("the end of an attempt was answered with %v", ack.Answer)
		}
	}
	return nil
}
