//go:build linux

package attack

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Attack is one program, with what it is for.
type Attack struct {
	Name     string
	Item     Item
	Threat   string    // row of the table of threats that it plays
	Defences []Defence // each of them stops it by itself
	// NoControl says why no run shows the attack at work without its defences; "" where one does.
	NoControl string
	Also      []Defence // others that must be off in its control, because they cannot be built without those
	Root      bool      // what runs without NoRights is the sandbox's root
	Single    bool      // it needs pid 1 to have the step's id, as it has rootless
	Networked bool      // it is about a sandbox with the host's network
	Trees     bool      // its attempt has an input twice: at ReadOnlyDir, and at CopyDir, where it may write its copy
	Setup     Setup     // of the attempt's folder
	Most      int64     // bound of a bomb
	// Judge says who decides whether it was denied.
	Judge Judge
	run   func(*Target) Verdict
}

// Setup says what is wrong with an attempt's folder before its sandbox is made.
type Setup string

// The setups.
const (
	LinkForTmp  Setup = "link-for-tmp"  // tmp is a link to the agent's folder
	LinkForHome Setup = "link-for-home" // home is
	LinkRace    Setup = "link-race"     // tmp is a folder and that link, by turns
)

// Judge says who decides about an attack.
type Judge string

// The judges.
const (
	ByVerdict Judge = ""       // the program itself, by its line
	ByDeath   Judge = "death"  // the kernel, which kills it where the defence stands
	ByLife    Judge = "life"   // whoever looks for its processes once the sandbox has ended; Started is its line
	ByOutput  Judge = "output" // whoever reads its output, and finds how much of it was taken
)

// Target is what an attack is told: where the decoys are, how far it may go, and what is the host's. It holds the secret of
// the decoys in two halves, so that whoever finds the whole has found a decoy and not the order.
type Target struct {
	Attack  string
	Secret  [2]string
	Key     string // file of an agent
	State   string // folder of an agent
	Socket  string // in that folder; who listens there says the secret
	Sibling string // folder of another attempt
	Outside string // file of the host
	Object  string // file in an agent's store of objects
	Tree    string // folder of the host that is the input; the program knows its path, which no job is told
	Name    string // of an abstract socket on the host
	Port    int    // on the host's loopback address
	ShmKey  int    // of a segment of shared memory on the host
	Most    int64  // bound of a bomb: bytes, processes or files
	Host    Namespaces
}

// Namespaces are the host's, by the numbers of their inodes.
type Namespaces struct{ Mount, Net, UTS, IPC, User uint64 }

// Verdict is what came of an attack.
type Verdict struct {
	Worked bool
	How    string // the evidence, or what denied it
	Errno  unix.Errno
}

// Words that begin a line with a verdict.
const (
	lineDenied = "denied: "
	lineWorked = "worked: "
)

// Started is the line of a program whose fate others decide.
const Started = "started"

func (v Verdict) String() string {
	if v.Worked {
		return lineWorked + v.How
	}
	return fmt.Sprintf("%s%s (errno %d)", lineDenied, v.How, int(v.Errno))
}

// ParseVerdict finds the verdict in what a program printed.
func ParseVerdict(output string) (Verdict, error) {
	for line := range strings.Lines(output) {
		line = strings.TrimSuffix(line, "\n")
		if how, ok := strings.CutPrefix(line, lineWorked); ok {
			return Verdict{Worked: true, How: how}, nil
		}
		if how, ok := strings.CutPrefix(line, lineDenied); ok {
			v := Verdict{How: how}
			if at := strings.LastIndex(how, " (errno "); at >= 0 {
				var number int
				if _, err := fmt.Sscanf(how[at:], " (errno %d)", &number); err == nil {
					v.How, v.Errno = how[:at], unix.Errno(number)
				}
			}
			return v, nil
		}
	}
	return Verdict{}, fmt.Errorf("no verdict in %q", output)
}

// Absent reports whether the denial only says that the kernel has no such thing.
func (v Verdict) Absent() bool {
	switch v.Errno {
	case unix.ENOSYS, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT, unix.ENODEV, unix.EOPNOTSUPP, unix.ENOEXEC:
		return !v.Worked
	}
	return false
}

// worked is the verdict of an attack that reached what it wanted.
func worked(format string, args ...any) Verdict {
	return Verdict{Worked: true, How: fmt.Sprintf(format, args...)}
}

// denied is the verdict of an attack that did not, for an error.
func denied(doing string, err error) Verdict {
	v := Verdict{How: doing}
	if err != nil {
		v.How += ": " + strings.ReplaceAll(err.Error(), "\n", " ")
		_ = errors.As(err, &v.Errno)
	}
	return v
}

// found reports whether data holds the secret.
func (t *Target) found(data []byte) bool {
	text := string(data)
	for {
		at := strings.Index(text, t.Secret[0])
		if at < 0 {
			return false
		}
		text = text[at+len(t.Secret[0]):]
		if strings.HasPrefix(text, t.Secret[1]) {
			return true
		}
	}
}

// The arguments of a program.
const (
	argAttack = "--forgeyard-attack" // then a Target
	argStage  = "--forgeyard-stage"  // then the name of a part of an attack
)

// Args are the arguments with which a program that calls Play is the attack.
func (t *Target) Args() []string {
	data, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and numbers
	}
	return []string{argAttack, base64.StdEncoding.EncodeToString(data)}
}

// Play is the attack, and does not return, if the program was started as one. Every TestMain of tests that attack calls it
// before anything else.
func Play() {
	if len(os.Args) < 3 {
		return
	}
	switch os.Args[1] {
	case argStage:
		os.Exit(stage(os.Args[2]))
	case argAttack:
		if err := play(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "attack:", err)
			os.Exit(70)
		}
		os.Exit(0)
	}
}

func play(argument string) error {
	data, err := base64.StdEncoding.DecodeString(argument)
	if err != nil {
		return err
	}
	var t Target
	if err := json.Unmarshal(data, &t); err != nil {
		return err
	}
	if err := confined(t.Host); err != nil {
		return err
	}
	a, ok := Find(t.Attack)
	if !ok {
		return fmt.Errorf("no attack %q", t.Attack)
	}
	if v := a.run(&t); v != (Verdict{}) {
		fmt.Println(v)
	}
	return nil
}

// confined refuses to attack the host.
func confined(host Namespaces) error {
	own, err := OwnNamespaces()
	if err != nil {
		return err
	}
	if host.Mount == 0 || own.Mount == host.Mount {
		return errors.New("this is the host, which is not attacked")
	}
	return nil
}

// OwnNamespaces are those of this process.
func OwnNamespaces() (Namespaces, error) {
	var n Namespaces
	for name, inode := range map[string]*uint64{"mnt": &n.Mount, "net": &n.Net, "uts": &n.UTS, "ipc": &n.IPC, "user": &n.User} {
		var s unix.Stat_t
		if err := unix.Stat("/proc/self/ns/"+name, &s); err != nil {
			return n, fmt.Errorf("look at the namespace %s: %w", name, err)
		}
		*inode = s.Ino
	}
	return n, nil
}

// Find returns the attack with a name, or the accomplice.
func Find(name string) (Attack, bool) {
	for _, a := range append(All(), Attack{Name: Accomplice, run: accomplice}) {
		if a.Name == name {
			return a, true
		}
	}
	return Attack{}, false
}
