//go:build linux

package attack_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/attack"
)

// decoys are the host as an attack would want to find it, made once for all tests.
type decoys struct {
	once   sync.Once
	err    error
	base   string // of everything below
	host   string // what no view shows: an agent's folder, another attempt, a file
	shown  string // what each view shows
	kernel string // what stands for files of the kernel, shown instead of it where that defence is off
	bin    string // the program

	target  attack.Target
	secret  string
	listens []net.Listener
	process *exec.Cmd
	shm     int
	shared  bool
	serving sync.WaitGroup
}

var world decoys

// need makes the decoys, or skips where sandboxes cannot be.
func need(t *testing.T) *decoys {
	t.Helper()
	if testing.Short() {
		t.Skip("makes sandboxes")
	}
	world.once.Do(func() { world.err = world.plant() })
	if world.err != nil {
		t.Fatal("plant decoys:", world.err)
	}
	return &world
}

// plant makes everything. The secret is another one in each run and in no program.
func (d *decoys) plant() error {
	var err error
	first, second := rand.Text(), rand.Text()
	d.secret = first + second
	d.target = attack.Target{Secret: [2]string{first, second}, ShmKey: 0x46590000 | os.Getpid()&0xffff}
	if d.target.Host, err = attack.OwnNamespaces(); err != nil {
		return err
	}
	if d.base, err = os.MkdirTemp(place(), "forgeyard-attack"); err != nil {
		return err
	}
	d.host, d.shown, d.kernel, d.bin = d.base+"/host", d.base+"/shown", d.base+"/kernel", d.base+"/bin"
	t := &d.target
	t.State = d.host + "/agent"
	t.Key, t.Socket = t.State+"/agent.key", t.State+"/launcher.sock"
	t.Sibling, t.Outside = d.host+"/work/another", d.host+"/notes"
	t.Object = t.State + "/objects/b3/ab/object"
	for _, step := range []func() error{d.folders, d.hostFiles, d.programs, d.kernelFiles, d.sockets, d.others, leakDescriptor(d)} {
		if err := step(); err != nil {
			return err
		}
	}
	return os.Setenv("FORGEYARD_DECOY_TOKEN", d.secret) // the agent's environment
}

// place is a folder of the host that views do not have.
func place() string {
	for _, dir := range []string{"/srv", "/home"} {
		if unix.Access(dir, unix.W_OK) == nil {
			return dir
		}
	}
	dir, _ := os.UserCacheDir()
	return dir
}

func (d *decoys) folders() error {
	if err := os.Chmod(d.base, 0o755); err != nil {
		return err
	}
	for _, dir := range []string{d.host, d.target.State, d.target.Sibling, filepath.Dir(d.target.Object), d.shown, d.kernel, d.bin, d.base + "/attempts", d.base + "/launchers"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// hostFiles are readable by all, so that only the view keeps them away.
func (d *decoys) hostFiles() error {
	var all error
	for _, name := range []string{d.target.Key, d.target.Outside, d.target.Sibling + "/source", d.target.State + "/journal", d.target.Object} {
		all = errors.Join(all, os.WriteFile(name, []byte(d.secret), 0o644))
	}
	return all
}

// programs are copies of this one with rights that a step must not get.
func (d *decoys) programs() error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	err = errors.Join(
		copyFile(own, d.bin+"/attack", 0o755),
		copyFile(own, d.shown+"/"+attack.FileProgram, 0o777),
		writeFile(d.shown+"/"+attack.FileWritable, nil, 0o666),
		writeFile(d.shown+"/"+attack.FileELF32, elf32(), 0o755),
	)
	for n := 0; n < attack.Ranges && err == nil && os.Geteuid() == 0; n++ {
		err = d.rightful("/bin/cat", n)
	}
	return err
}

// rightful makes the programs that would have the rights of the root of a range of ids.
func (d *decoys) rightful(program string, n int) error {
	root := sandbox.DefaultUIDBase + n*sandbox.SlotIDs
	setuid, capable := fmt.Sprint(d.shown, "/", attack.FileSetuid, n), fmt.Sprint(d.shown, "/", attack.FileCapable, n)
	return errors.Join(
		copyFile(program, setuid, 0o755),
		os.Chown(setuid, root, root),
		os.Chmod(setuid, 0o755|os.ModeSetuid),
		copyFile(program, capable, 0o755),
		unix.Setxattr(capable, "security.capability", everyCapability(uint32(root)), 0),
	)
}

// everyCapability is the attribute of a file that gives whoever runs it in root's user namespace all capabilities.
func everyCapability(root uint32) []byte {
	const revision3, effective = 0x03000000, 1
	const low, high = 0xffffffff, 0x1ff
	var b []byte
	for _, v := range []uint32{revision3 | effective, low, 0, high, 0, root} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// kernelFiles can be written to by all.
func (d *decoys) kernelFiles() error {
	var all error
	for _, name := range []string{attack.FileSysctl, attack.FileSysfs, attack.FileRelease, attack.FileProcs, attack.FileKmsg} {
		all = errors.Join(all, writeFile(d.kernel+"/"+name, []byte("decoy\n"), 0o666))
	}
	return all
}

// sockets tell the secret to whoever connects: one in the agent's folder, one with an abstract name, one on loopback.
func (d *decoys) sockets() error {
	d.target.Name = "forgeyard-attack-" + rand.Text()
	for _, at := range [][2]string{{"unix", d.target.Socket}, {"unix", "@" + d.target.Name}, {"tcp", "127.0.0.1:0"}} {
		l, err := net.Listen(at[0], at[1])
		if err != nil {
			return err
		}
		d.listens = append(d.listens, l)
		d.serving.Go(func() { d.serve(l) })
		if tcp, ok := l.Addr().(*net.TCPAddr); ok {
			d.target.Port = tcp.Port
		}
	}
	return os.Chmod(d.target.Socket, 0o777)
}

func (d *decoys) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, d.secret)
		_ = conn.Close()
	}
}

// others are a process whose arguments are the secret, and a segment of shared memory.
func (d *decoys) others() error {
	d.process = exec.CommandContext(context.Background(), "/bin/sleep", "3600")
	d.process.Args[0] = "sleep-" + d.secret
	if err := d.process.Start(); err != nil {
		return err
	}
	id, err := unix.SysvShmGet(d.target.ShmKey, 4096, unix.IPC_CREAT|0o666)
	if err != nil {
		return fmt.Errorf("shared memory: %w", err)
	}
	d.shm, d.shared = id, true // the first id of a machine is 0
	data, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return err
	}
	copy(data, d.secret)
	return unix.SysvShmDetach(data)
}

// leakDescriptor opens what every process that is started carelessly inherits.
func leakDescriptor(d *decoys) func() error {
	return func() error {
		_, err := unix.Open(d.target.Key, unix.O_RDONLY, 0) // never closed, and not on execve either
		return err
	}
}

// close takes everything away.
func (d *decoys) close() error {
	if d.base == "" {
		return nil
	}
	for _, l := range d.listens {
		_ = l.Close()
	}
	d.serving.Wait()
	if d.process != nil && d.process.Process != nil {
		_ = d.process.Process.Kill()
		_ = d.process.Wait()
	}
	if d.shared {
		_, _ = unix.SysvShmCtl(d.shm, unix.IPC_RMID, nil)
	}
	return os.RemoveAll(d.base)
}

func writeFile(name string, data []byte, mode os.FileMode) error {
	if err := os.WriteFile(name, data, 0o600); err != nil {
		return err
	}
	return os.Chmod(name, mode) // whatever the umask is
}

func copyFile(from, to string, mode os.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), os.Chmod(to, mode))
}

// elf32 is a program of 32-bit code: it makes a user namespace by the number that this has in the table for such programs,
// and ends with the number of the error.
func elf32() []byte {
	code := []byte{
		0xb8, 0x36, 0x01, 0x00, 0x00, // mov eax, 310: unshare
		0xbb, 0x00, 0x00, 0x00, 0x10, // mov ebx, CLONE_NEWUSER
		0xcd, 0x80, // int 0x80
		0xf7, 0xd8, // neg eax
		0x89, 0xc3, // mov ebx, eax
		0xb8, 0x01, 0x00, 0x00, 0x00, // mov eax, 1: exit
		0xcd, 0x80,
	}
	const base, header, program = 0x08048000, 52, 32
	size := uint32(header + program + len(code))
	var b []byte
	half := func(values ...uint16) {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
	}
	word := func(values ...uint32) {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	b = append(b, 0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	half(2, 3) // a program, for the i386
	word(1, base+header+program, header, 0, 0)
	half(header, program, 1, 40, 0, 0)
	word(1, 0, base, base, size, size, 5, 0x1000)
	return append(b, code...)
}

// folder makes an attempt's folder as an agent would, with what a neighbour may have left in it.
func (d *decoys) folder(t *testing.T, setup attack.Setup) string {
	t.Helper()
	dir := filepath.Join(d.base, "attempts", rand.Text())
	for _, name := range []string{dir, dir + "/home", dir + "/tmp"} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Symlink(d.target.State, dir+"/"+attack.FileLink); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := unix.Mknod(dir+"/"+attack.FileNull, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir+"/"+attack.FileNull, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	switch setup {
	case attack.LinkForTmp:
		replaceByLink(t, dir+"/tmp", d.target.State)
	case attack.LinkForHome:
		replaceByLink(t, dir+"/home", d.target.State)
	case attack.LinkRace:
		swap(t, dir, d.target.State)
	}
	return dir
}

func replaceByLink(t *testing.T, name, target string) {
	t.Helper()
	if err := errors.Join(os.Remove(name), os.Symlink(target, name)); err != nil {
		t.Fatal(err)
	}
}

// swap makes a folder's tmp a link and a folder by turns, as fast as it can, until the test ends.
func swap(t *testing.T, dir, target string) {
	t.Helper()
	if err := os.Symlink(target, dir+"/other"); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, dir+"/tmp", unix.AT_FDCWD, dir+"/other", unix.RENAME_EXCHANGE)
			}
		}
	})
	t.Cleanup(func() { close(stop); swapping.Wait() })
}
