package confine_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestOrdinaryWorkRuns runs what people's jobs are made of, as steps behind all walls.
func TestOrdinaryWorkRuns(t *testing.T) {
	work := []struct {
		program string // left out where the machine has it not
		script  string
		want    string // the last line
	}{
		{"bash", `bash -c 'f() { echo "$((6*7))"; }; x=$(f | cat); echo "$x" > >(cat); wait; echo $x'`, "42"},
		{"git", `git init -q r && cd r && git config user.email a@b && git config user.name a && echo x > f && git add f && git commit -qm one && git log --format=%s`, "one"},
		{"go", `mkdir m && cd m && printf 'module hello\n\ngo 1.21\n' > go.mod && printf 'package main\nfunc main() { println("hello") }\n' > main.go && CGO_ENABLED=0 go build -p 2 -o hello . && ./hello 2>&1`, "hello"},
		{"gcc", `printf '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n' > a.c && gcc -o a a.c && ./a`, "hello"},
		{"make", `printf 'all: a b c\na b c:\n\t@echo x > $@\n' > Makefile && make -s -j4 && cat a b c | tr -d '\n'`, "xxx"},
		{"python3", `/usr/bin/python3 -c 'import json, multiprocessing, subprocess, tempfile, threading
multiprocessing.Lock()
with tempfile.NamedTemporaryFile() as f: f.write(b"x")
t = threading.Thread(target=lambda: None); t.start(); t.join()
print(subprocess.check_output(["echo", "hello"], text=True).strip())'`, "hello"},
		{"node", `node -e 'const fs = require("fs"); fs.writeFileSync("f", "hello"); fs.readFile("f", "utf8", (e, d) => { const w = new (require("worker_threads").Worker)("0", {eval: true}); w.on("exit", () => console.log(d)) })'`, "hello"},
		{"npm", `mkdir p && cd p && printf '{"name":"p","version":"1.0.0","scripts":{"t":"echo hello"}}' > package.json && npm run -s t && npm pack -s`, "p-1.0.0.tgz"},
		{"tar", `mkdir d && echo x > d/f && chmod 640 d/f && tar -czf d.tgz d && mkdir e && tar -xpzf d.tgz -C e && stat -c %a e/d/f`, "640"},
		{"ssh-keygen", `ssh-keygen -q -t ed25519 -N '' -f key && stat -c %a key`, "600"},
		{"script", `script -qec 'test -t 0 && echo tty' /dev/null | tr -d '\r'`, "tty"},
		{"strace", `strace -f -o trace echo hello && grep -q execve trace && echo traced`, "traced"},
		{"cp", `echo x > a && cp -a a b && ln a c && ln -s a d && mv b /work/home/b && mv /work/home/b e && echo y > /tmp/t && mv /tmp/t . && cat e t | tr -d '\n'`, "xy"},
		{"sh", `echo hello > /dev/shm/x && cat /dev/shm/x`, "hello"},
		{"sh", `mkfifo p && (echo hello > p &) && cat p`, "hello"},
		{"sh", `echo hello > /dev/stderr 2>&1; echo quiet > /dev/null; head -c 4 /dev/urandom | wc -c | tr -d ' '`, "4"},
		{"sh", `umask; ulimit -c; date +%Z; hostname > /dev/null; cat /etc/hostname`, "forgeyard"},
	}
	kinds(t, func(t *testing.T, mapped bool) {
		for _, w := range work {
			t.Run(w.program, func(t *testing.T) {
				if _, err := exec.LookPath(w.program); err != nil {
					t.Skip(err)
				}
				if w.program == "go" && (testing.Short() || !mapped) {
					t.Skip("compiles the runtime, once is enough")
				}
				lines := strings.Split(strings.TrimSpace(shell(t, mapped, w.script)), "\n")
				if got := lines[len(lines)-1]; got != w.want {
					t.Errorf("the last of %d lines is %q, want %q", len(lines), got, w.want)
				}
			})
		}
	})
}
