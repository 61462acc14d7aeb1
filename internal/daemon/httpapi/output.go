package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/logs"
)

const (
	// maxCompressing is how many answers are compressed at once, each with about 2 MiB; the others are sent as they are.
	maxCompressing = 8
	// compressFrom is from how many bytes on that is worth it.
	compressFrom = 32 << 10
)

// sendOutput answers with the bytes of stdout and stderr as they are stored now: with their exact length, in whole or the range
// that is asked for. Those of a sealed log have an entity tag, since they never change.
func (s *Server) sendOutput(w http.ResponseWriter, r *http.Request, q logRequest) error {
	o, err := s.cfg.Logs.Output(r.Context(), q.attempt)
	if err != nil {
		return err
	}
	defer func() { _ = o.Close() }()
	begin, err := o.OutputTo(q.from)
	if err != nil {
		return err
	}
	if _, err := o.Seek(begin, io.SeekStart); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", api.TypeRawLog)
	h.Set("Vary", "Accept-Encoding")
	if o.Info.Sealed {
		h.Set("Etag", fmt.Sprintf("%q", o.Info.Hash.String()))
	}
	slow := &patient{w, http.NewResponseController(w)}
	if o.Size()-begin >= compressFrom && r.Header.Get("Range") == "" && takesZstd(r) {
		select {
		case s.compressing <- struct{}{}:
			defer func() { <-s.compressing }()
			return sendZstd(slow, o)
		default:
		}
	}
	if strings.Contains(r.Header.Get("Range"), ",") {
		r.Header.Del("Range") // many small ones would cost far more than they bring; all of it is an answer to them too
	}
	http.ServeContent(slow, r, "", time.Time{}, &part{o, begin})
	return o.Err()
}

// part is the output from a byte on.
type part struct {
	*logs.Output
	begin int64
}

// Seek implements io.Seeker.
func (p *part) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		offset += p.begin
	}
	at, err := p.Output.Seek(offset, whence)
	return at - p.begin, err
}

// patient gives each write its own time, so that a long answer to a slow reader is not cut.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p *patient) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(writeWithin)) // a writer without one is a test's
	return p.ResponseWriter.Write(b)
}

// takesZstd reports whether an answer may be compressed.
func takesZstd(r *http.Request) bool {
	for _, coding := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.EqualFold(strings.TrimSpace(name), "zstd") {
			return strings.Trim(strings.TrimSpace(weight), "q=0. ") != "" || weight == ""
		}
	}
	return false
}

// sendZstd sends the output compressed. How long that is nobody knows before, so no length is told, nor is it the entity that has
// the tag.
func sendZstd(w http.ResponseWriter, from *logs.Output) error {
	w.Header().Del("Etag")
	w.Header().Set("Content-Encoding", "zstd")
	encoder, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(512<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return err
	}
	if _, err := io.Copy(encoder, from); err != nil {
		return err
	}
	return encoder.Close()
}

// searchLog answers with the lines in which a text was found, in a bounded part of a log.
func (s *Server) searchLog(w http.ResponseWriter, r *http.Request, q logRequest) error {
	found, err := s.cfg.Logs.Search(r.Context(), q.attempt, *q.find)
	if err != nil {
		return err
	}
	out := api.LogMatches{Items: []api.LogMatch{}, Next: found.Next.String(), More: !found.Done, Searched: found.Bytes}
	for _, m := range found.Matches {
		line := api.OutputOf(uint64(m.Place.Seq), m.Stream.String(), api.TimeOf(m.Time), m.Text)
		out.Items = append(out.Items, api.LogMatch{LogOutput: line, Offset: m.Place.Skip, Start: m.Start, End: m.End})
	}
	s.reply(w, r, http.StatusOK, out)
	return nil
}
