package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A driver runs the command and talks to it.
type driver struct {
	t     *testing.T
	in    *io.PipeWriter
	lines *bufio.Scanner
	ended chan error
}

func drive(t *testing.T, args ...string) *driver {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	d := &driver{t: t, in: inW, lines: bufio.NewScanner(outR), ended: make(chan error, 1)}
	go func() {
		err := run(t.Context(), args, inR, outW)
		_ = outW.CloseWithError(io.EOF)
		_ = inR.Close()
		d.ended <- err
	}()
	return d
}

func (d *driver) read() string {
	d.t.Helper()
	if !d.lines.Scan() {
		d.t.Fatal("the relay ended: ", <-d.ended)
	}
	return d.lines.Text()
}

func (d *driver) say(line string) string {
	d.t.Helper()
	if _, err := fmt.Fprintln(d.in, line); err != nil {
		d.t.Fatal(err)
	}
	return d.read()
}

func TestTheRelayIsDrivenByLines(t *testing.T) {
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_ = server.SetDeadline(time.Now().Add(20 * time.Second))
	d := drive(t, "-to", server.LocalAddr().String(), "-seed", "3", "-delay", "1ms")
	address, ok := strings.CutPrefix(d.read(), "listening ")
	if !ok {
		t.Fatal("no address")
	}
	c, err := net.Dial("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for line, want := range map[string]string{
		"set loss=2": "error relay: loss is 2, not from 0 to 1", "cut left": `error relay: no direction "left"; use up, down or both`,
		"dance": `error no command "dance": use cut, heal, set, rebind, stats or quit`, "set delay=0s jitter=1ms": "ok", "rebind": "ok",
	} {
		if got := d.say(line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	if got := d.say("cut up"); got != "ok" {
		t.Fatal(got)
	}
	if _, err := c.Write([]byte("lost")); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(d.say("stats"), "up={received=1 ") {
	}
	if got := d.say("heal"); got != "ok" {
		t.Fatal(got)
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 16)
	n, err := server.Read(buffer)
	if err != nil || !bytes.Equal(buffer[:n], []byte("hello")) {
		t.Errorf("the server got %q, %v", buffer[:n], err)
	}
	if got := d.say("quit"); got != "ok" {
		t.Fatal(got)
	}
	if err := <-d.ended; err != nil {
		t.Error(err)
	}
}

func TestBadArgumentsAreUsageErrors(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"-to", "127.0.0.1:1", "-loss", "x"},
		{"-to", "127.0.0.1:1", "-cut", "x"},
		{"-to", "127.0.0.1:1", "-one-way", "x"},
		{"-to", "127.0.0.1:1", "more"},
		{"-no-such-flag"},
	} {
		if err := run(t.Context(), args, strings.NewReader(""), io.Discard); program.Code(err) != program.CodeUsage {
			t.Errorf("%q: %v", args, err)
		}
	}
}
