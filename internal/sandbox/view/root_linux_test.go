package view_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/sandbox/view"
)

func TestBuildRefusesOnTheHost(t *testing.T) {
	if os.Getpid() == 1 {
		t.Skip("this is process 1 of a container, which could pass for a room")
	}
	own, err := view.Own()
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range []view.Namespace{{}, own, {Dev: own.Dev, Ino: own.Ino + 1}} {
		if _, err := view.Build(view.Plan{HostNS: ns}, nil); !errors.Is(err, view.ErrNotInside) {
			t.Fatalf("got %v", err)
		}
	}
}

func TestBuildRefusesWithoutTheHostsNamespaceOrInIt(t *testing.T) {
	for name, ns := range map[string]func(own uint64) view.Namespace{
		"nameless": func(uint64) view.Namespace { return view.Namespace{} },
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, true)
			o.HostNS = ns(o.HostNS.Ino)
			plan, err := view.New(view.Machine(), o)
			if err != nil {
				t.Fatal(err)
			}
			out, err := inFolder(t, o, plan, "echo ran", func(string) error { return nil })
			if err == nil || !strings.Contains(out, "refused outside") {
				t.Errorf("got %v: %s", err, out)
			}
		})
	}
}

func TestAStepSeesItsViewAndNothingElse(t *testing.T) {
	both(
		t, nil, `ls -d / /[!l]* | tr '\n' ' '; echo; id -un; pwd; ls /work /tmp`,
		"/ /bin /dev /etc /opt /proc /run /sbin /sys /tmp /usr /var /work ", "forgeyard", "/work", "/tmp:", "", "/work:", "home", "tmp",
	)
}

func TestNothingButTheAttemptsFoldersCanBeWritten(t *testing.T) {
	both(
		t, nil, `for d in / /etc /dev /usr /usr/bin /opt /run /run/forgeyard /var /sys /proc/sys/kernel /etc/ssl; do touch $d/x 2>/dev/null && echo wrote $d; done
			for d in /work /tmp /dev/shm /run/forgeyard/secrets $HOME $TMPDIR /var/tmp; do touch $d/x || echo cannot write $d; done
			(echo 1 > /proc/sys/kernel/hostname) 2>/dev/null && echo set; echo x > /dev/null && echo done`,
		"done",
	)
}

func TestMountsCarryTheirFlags(t *testing.T) {
	both(
		t, nil, `for m in / /usr /work /tmp /dev/shm /run/forgeyard/secrets; do
				o=,$(grep " $m " /proc/self/mountinfo | head -1 | cut -d' ' -f6),
				for f in nosuid nodev; do case $o in *,$f,*) ;; *) echo $m is not $f;; esac; done
			done
			for m in / /usr /proc/sys /dev/null; do case ,$(grep " $m " /proc/self/mountinfo | head -1 | cut -d' ' -f6), in *,ro,*) ;; *) echo $m is not read-only;; esac; done
			case ,$(grep " /proc " /proc/self/mountinfo | cut -d' ' -f6), in *,noexec,*) ;; *) echo /proc runs programs;; esac`,
	)
}

func TestProcTellsOfTheSandboxOnly(t *testing.T) {
	both(
		t, nil, `test -e /proc/1 && echo sees pid 1
			for f in keys kcore kmsg timer_list sysrq-trigger cmdline interrupts kallsyms; do test -e /proc/$f && test -n "$(head -c 1 /proc/$f 2>/dev/null)" && echo $f tells; done
			for d in acpi bus fs irq scsi; do test -d /proc/$d && test -n "$(ls /proc/$d)" && echo $d tells; done
			for f in kcore keys key-users timer_list kmsg sysrq-trigger; do
				test ! -e /proc/$f || grep -q " /proc/$f " /proc/self/mountinfo || echo $f is not covered
			done
			test -n "$(ls /sys)" && echo sys tells
			grep -q . /proc/cpuinfo /proc/meminfo && echo works`,
		"works",
	)
}

func TestDevicesAreFewAndWork(t *testing.T) {
	both(
		t, nil, `ls /dev | tr '\n' ' '; echo; head -c 3 /dev/zero | wc -c; echo x > /dev/full 2>/dev/null || echo full; echo x | cat /dev/stdin; echo out > /dev/stdout
			mknod n c 1 3 2>/dev/null && echo made a device; ls -A /dev/pts`,
		"fd full null ptmx pts random shm stderr stdin stdout urandom zero ", "3", "full", "x", "out", "ptmx",
	)
}

func TestSecretsAndSharedMemoryAreTheStepsOwnAndBounded(t *testing.T) {
	both(
		t, func(o *view.Options) { o.Shm = 1 << 20 }, `stat -c '%a %u' /run/forgeyard/secrets; stat -c %a /dev/shm
			head -c 3000000 /dev/zero 2>/dev/null > /dev/shm/x || stat -c %s /dev/shm/x
			head -c 3000000 /dev/zero 2>/dev/null > /run/forgeyard/secrets/x || stat -c %s /run/forgeyard/secrets/x
			cp /bin/true /run/forgeyard/secrets/run 2>/dev/null; rm /run/forgeyard/secrets/x; cp /bin/true /run/forgeyard/secrets/run; /run/forgeyard/secrets/run 2>/dev/null || echo does not run`,
		"700 1000", "1777", "1048576", "1048576", "does not run",
	)
}

func TestTheSandboxHasNamesOfItsOwn(t *testing.T) {
	both(
		t, nil, `cat /etc/hostname /etc/machine-id; getent passwd 1000 | cut -d: -f1,6; getent hosts localhost | awk '{print $1}' | head -1; git config --system safe.directory; date +%Z; cut -d: -f1 /etc/passwd | tr '\n' ' '`,
		"forgeyard", view.MachineID, "forgeyard:/work/home", "::1", "*", "UTC", "root forgeyard nobody",
	)
}

func TestAFolderThatOnlyRootReachesIsHandedOver(t *testing.T) {
	dir := t.TempDir() // with a parent that is closed to others
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\necho ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	o := options(t, true)
	o.ReadOnly = []view.Bind{{Source: dir, Target: "/tools"}}
	if got := step(t, o, `/tools/tool; touch /tools/x 2>/dev/null || echo read-only`); got != "ran\nread-only\n" {
		t.Errorf("printed %q", got)
	}
}

func TestAHiddenFolderIsEmptyInside(t *testing.T) {
	dir, err := os.MkdirTemp("", "view")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, name := range []string{"state", "open"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "key"), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	both(t, func(o *view.Options) {
		o.ReadOnly = []view.Bind{{Source: dir, Target: "/shown"}}
		o.Hide = []string{filepath.Join(dir, "state")}
	}, `cat /shown/open/key; echo; ls /shown/state | wc -l`, "open", "0")
}

func TestAPlantedLinkDoesNotBendTheFolderForTemporaryFiles(t *testing.T) {
	o := options(t, true)
	plan, err := view.New(view.Machine(), o)
	if err != nil {
		t.Fatal(err)
	}
	out, err := inFolder(t, o, plan, "echo ran", func(dir string) error { return os.Symlink("/etc", filepath.Join(dir, "tmp")) })
	if err == nil || strings.Contains(out, "ran") {
		t.Errorf("a step ran: %s", out)
	}
}
