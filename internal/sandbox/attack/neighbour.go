//go:build linux

package attack

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Accomplice is the name of the program that leaves things wherever a sandbox lets it, for another one to find, and then
// waits for its bound. It is no attack: what it does is allowed.
const Accomplice = "leave-things"

// accomplice leaves files, sockets and shared memory, each with the secret.
func accomplice(t *Target) Verdict {
	if err := t.leave(); err != nil {
		return denied("leave things", err)
	}
	fmt.Println(Started)
	stayAlive()
	return Verdict{}
}

const leftName = "left-by-a-neighbour"

func leftFiles() []string {
	var list []string
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/work", "/work/home", "/run/forgeyard/secrets"} {
		list = append(list, filepath.Join(dir, leftName))
	}
	return list
}

func (t *Target) leave() error {
	secret := t.Secret[0] + t.Secret[1]
	for _, name := range leftFiles() {
		_ = os.WriteFile(name, []byte(secret), 0o644) // not every place is there
	}
	for network, address := range t.meetingPlaces() {
		listener, err := net.Listen(network, address)
		if err != nil {
			return err
		}
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte(secret))
				_ = conn.Close()
			}
		}()
	}
	id, err := unix.SysvShmGet(t.ShmKey+1, 4096, unix.IPC_CREAT|0o666)
	if err != nil {
		return err
	}
	data, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return err
	}
	copy(data, secret)
	return nil
}

func (t *Target) meetingPlaces() map[string]string {
	return map[string]string{"unix": "@" + t.Name + "-left", "tcp": fmt.Sprint("127.0.0.1:", t.Port)}
}

// findLeft looks for what the accomplice has left.
func findLeft(t *Target) Verdict {
	var found []string
	for _, name := range leftFiles() {
		if t.readSecret(name).Worked {
			found = append(found, name)
		}
	}
	addresses := []unix.Sockaddr{&unix.SockaddrUnix{Name: "@" + t.Name + "-left"}, &unix.SockaddrInet4{Port: t.Port, Addr: [4]byte{127, 0, 0, 1}}}
	for i, family := range []int{unix.AF_UNIX, unix.AF_INET} {
		if t.greeted(family, unix.SOCK_STREAM, addresses[i]).Worked {
			found = append(found, []string{"an abstract socket", "a port of loopback"}[i])
		}
	}
	segment := *t
	segment.ShmKey++
	if useSharedMemory(&segment).Worked {
		found = append(found, "shared memory")
	}
	if len(found) > 0 {
		return worked("found the secret in %s", strings.Join(found, ", "))
	}
	return denied("nothing that the neighbour has left", nil)
}
