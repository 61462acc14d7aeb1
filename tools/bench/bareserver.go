//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/transport/quic/bare"
)

// roleBareServer is the process that startBare starts.
const roleBareServer = "bare-server"

// bareProcess is a bare server in a process of its own.
type bareProcess struct {
	credentials *bare.Credentials
	addr        string
	cmd         *exec.Cmd
	in          io.Closer
}

// startBare starts one. The settings are added to its environment.
func startBare(ctx context.Context, settings ...string) (_ *bareProcess, err error) {
	p := &bareProcess{}
	if p.credentials, err = bare.NewCredentials(); err != nil {
		return nil, err
	}
	certificate, key, err := p.credentials.DER()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(ctx, self, "-role", roleBareServer)
	p.cmd.Env = append(os.Environ(), settings...)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	encode := base64.StdEncoding.EncodeToString
	_, err = fmt.Fprintf(in, "%s %s\n", encode(certificate), encode(key))
	if err == nil {
		p.addr, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.addr = strings.TrimSpace(p.addr)
	return p, nil
}

func (p *bareProcess) pid() int { return p.cmd.Process.Pid }

// dial connects to it.
func (p *bareProcess) dial(ctx context.Context) (*bare.Client, error) {
	return bare.Dial(ctx, p.credentials, p.addr)
}

// close asks it to end, and waits.
func (p *bareProcess) close() error {
	err := p.in.Close()
	return errors.Join(err, p.cmd.Wait())
}

// keeping as a setting makes a bare server do with bulk what a store has to: it hashes it, and writes it to a file.
const keeping = "FORGEYARD_BENCH_KEEP=1"

// keep makes a file for one stream, which goes with its end.
func keep() (io.WriteCloser, error) {
	file, err := os.CreateTemp("", "fybench")
	return &hashedFile{file: file, hash: digest.NewHash()}, err
}

// hashedFile is removed when it is closed.
type hashedFile struct {
	file *os.File
	hash *digest.Hash
}

func (f *hashedFile) Write(p []byte) (int, error) {
	_, _ = f.hash.Write(p) // never fails
	return f.file.Write(p)
}

func (f *hashedFile) Close() error {
	_ = f.hash.Ref()
	return errors.Join(f.file.Close(), os.Remove(f.file.Name()))
}

// bareServer is that process: it reads credentials, prints its address, and serves until its input ends.
func bareServer(in io.Reader, out io.Writer) error {
	reader := bufio.NewReader(in)
	var certificate, key string
	if _, err := fmt.Fscan(reader, &certificate, &key); err != nil {
		return err
	}
	credentials, err := bare.ParseCredentials(certificate, key)
	if err != nil {
		return err
	}
	kept := bare.Drop
	if slices.Contains(os.Environ(), keeping) {
		kept = keep
	}
	server, err := bare.Listen(credentials, kept)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, server.Addr()); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, reader) // until the parent is done
	return server.Close()
}
