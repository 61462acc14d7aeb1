//go:build linux

package fleet

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Witness is a file server on the loopback that workloads speak with, because the folders of this machine are out of reach
// for a job that is confined: they leave marks with it that outlive them, and wait for ours. A job needs the host's
// network for it. One request a line, with its bytes behind it, and one line in return:
//
//	create NAME        a new file; refused if it is there
//	append NAME SIZE   bytes to the end of a file, which need not be there; the answer is its number of lines
//	put NAME SIZE      the only content of a file
//	has NAME           yes or no
//
// It has a goroutine that accepts, and one for each connection; close joins them.
type Witness struct {
	folder   string
	listener net.Listener
	served   sync.WaitGroup

	mu    sync.Mutex // also: one change of files at a time
	conns map[net.Conn]bool
}

// maxSaid bounds what one request carries.
const maxSaid = 1 << 20

func newWitness(folder string) (*Witness, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &Witness{folder: folder, listener: l, conns: map[net.Conn]bool{}}
	w.served.Go(w.accept)
	return w, nil
}

// Address is where it listens, as host:port.
func (w *Witness) Address() string { return w.listener.Addr().String() }

// Script puts two functions in front of a script for bash: "note NAME TEXT" appends a line to a file and prints how many
// it has, "has NAME" is true once there is such a file.
func (w *Witness) Script(script string) string {
	host, port, _ := strings.Cut(w.Address(), ":")
	return fmt.Sprintf(`ask() { exec 9<>/dev/tcp/%s/%s; printf "$@" >&9; read -r answer <&9; exec 9>&-; }
note() { ask 'append %%s %%d\n%%s\n' "$1" "$((${#2}+1))" "$2"; echo "$answer"; }
has() { ask 'has %%s\n' "$1"; [ "$answer" = yes ]; }
`, host, port) + script
}

func (w *Witness) accept() {
	for {
		conn, err := w.listener.Accept()
		if err != nil {
			return // closed
		}
		w.mu.Lock()
		w.conns[conn] = true
		w.mu.Unlock()
		w.served.Go(func() { w.serve(conn) })
	}
}

func (w *Witness) serve(conn net.Conn) {
	defer func() {
		w.mu.Lock()
		delete(w.conns, conn)
		w.mu.Unlock()
		_ = conn.Close()
	}()
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		answer, err := w.answer(strings.Fields(line), r)
		if err != nil {
			answer = "error: " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		if _, err := io.WriteString(conn, answer+"\n"); err != nil {
			return
		}
	}
}

var errSaid = errors.New("this is no request")

func (w *Witness) answer(words []string, r io.Reader) (string, error) {
	if len(words) < 2 || words[1] != filepath.Base(words[1]) {
		return "", errSaid
	}
	var said []byte
	if len(words) == 3 {
		size, err := strconv.ParseUint(words[2], 10, 32)
		if err != nil || size > maxSaid {
			return "", errSaid
		}
		said = make([]byte, size)
		if _, err := io.ReadFull(r, said); err != nil {
			return "", err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	path := filepath.Join(w.folder, words[1])
	switch words[0] {
	case "create":
		return "ok", write(path, os.O_EXCL, nil)
	case "append":
		if err := write(path, os.O_APPEND, said); err != nil {
			return "", err
		}
		content, err := os.ReadFile(path)
		return strconv.Itoa(strings.Count(string(content), "\n")), err
	case "put":
		if err := os.WriteFile(path+".new", said, 0o600); err != nil {
			return "", err
		}
		return "ok", os.Rename(path+".new", path)
	case "has":
		_, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return "no", nil
		}
		return "yes", err
	}
	return "", errSaid
}

func write(path string, flag int, content []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flag, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

func (w *Witness) close() error {
	err := w.listener.Close()
	w.mu.Lock()
	for conn := range w.conns {
		_ = conn.Close() // it is only read from
	}
	w.mu.Unlock()
	w.served.Wait()
	return err
}

// Teller is a workload's connection to a witness. One goroutine uses it.
type Teller struct {
	conn net.Conn
	r    *bufio.Reader
}

// NewTeller connects to a witness. It lives as long as its process.
func NewTeller(address string) (*Teller, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Teller{conn: conn, r: bufio.NewReader(conn)}, nil
}

// Create makes a file, which must be new.
func (t *Teller) Create(name string) error { return t.ask("create "+name+"\n", nil) }

// Append appends to a file.
func (t *Teller) Append(name string, p []byte) error {
	return t.ask(fmt.Sprintf("append %s %d\n", name, len(p)), p)
}

// Put makes p the content of a file.
func (t *Teller) Put(name string, p []byte) error {
	return t.ask(fmt.Sprintf("put %s %d\n", name, len(p)), p)
}

func (t *Teller) ask(line string, p []byte) error {
	if _, err := t.conn.Write(append([]byte(line), p...)); err != nil {
		return err
	}
	answer, err := t.r.ReadString('\n')
	if err == nil && strings.HasPrefix(answer, "error") {
		err = errors.New(strings.TrimSpace(answer))
	}
	return err
}
