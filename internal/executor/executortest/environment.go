package executortest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

var environment = []testCase{
	{name: "it starts empty and is put together in order", run: envOrder},
	{name: "the agent's own environment does not come through", run: envIsClean},
	{name: "there is no terminal and nothing to read", run: noTerminal},
	{name: "umask, descriptors and limits are the executor's", run: inherited, supervised: true},
	{name: "each step has its folder, home and folder for temporary files", run: folders},
	{name: "secrets are in variables and files, and in no arguments", run: secretsArrive},
	{name: "a secret that no variable can hold is refused", run: secretWithZero},
}

func envOrder(b *bench) {
	b.order.Spec.Env = append(b.order.Spec.Env, forge.EnvVar{Name: "A", Value: "job"}, forge.EnvVar{Name: "B", Value: "job"},
		forge.EnvVar{Name: "C", Value: "job"}, forge.EnvVar{Name: "D", Value: "job"})
	b.order.Env = []forge.EnvVar{{Name: "C", Value: "agent"}, {Name: "D", Value: "agent"}, {Name: "FORGEYARD_RUN", Value: "run"}}
	b.secret = []executor.Secret{{Use: forge.SecretUse{Env: "D"}, Value: forge.NewSecret([]byte("secret"))}}
	s := script("echo $A $B $C $D $FORGEYARD_RUN")
	s.Env = []forge.EnvVar{{Name: "B", Value: "step"}, {Name: "C", Value: "step"}, {Name: "D", Value: "step"}}
	b.run(s)
	b.stdout("job step agent secret run\n")
}

func envIsClean(b *bench) {
	b.Setenv("AGENT_CANARY", "canary")
	b.Setenv("SSH_AUTH_SOCK", "canary")
	b.run(argv("env"))
	var names []string
	for line := range strings.Lines(b.sink.Text(forge.LogStdout)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		names = append(names, name)
		if strings.Contains(value, "canary") {
			b.Errorf("%s came through", name)
		}
	}
	slices.Sort(names)
	names = slices.DeleteFunc(names, func(n string) bool { return n == "FORGEYARD_MARK" })
	want := []string{executor.EnvOutput, executor.EnvOutputDir, executor.EnvWork, "HOME", "PATH", "TMPDIR", "UNIQUE"}
	if diff := cmp.Diff(want, names); diff != "" {
		b.Error(diff)
	}
}

// Case B60.
func noTerminal(b *bench) {
	b.run(script("tty; test -t 1; echo $?; read x; echo $?; (: </dev/tty) 2>/dev/null || echo none"))
	b.stdout("not a tty\n1\n1\nnone\n")
}

func inherited(b *bench) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = file.Close() })
	leaky(b.T, file) // as if the agent's parent had left it open
	b.run(script(`umask; ulimit -c; for f in 3 4 5 6 7 8 9 10 11 12 13 14 15 16 20 30 40 50; do
		(: <&$f) 2>/dev/null && echo descriptor $f; done; trap`))
	b.stdout("0022\n0\n")
}

func folders(b *bench) {
	if err := os.MkdirAll(filepath.Join(b.order.Folder, "source", "below"), 0o755); err != nil {
		b.Fatal(err)
	}
	second := script(`pwd; echo "$HOME"; echo "$TMPDIR"; echo "$FORGEYARD_WORK"; touch "$HOME/a" "$TMPDIR/b"`)
	second.Dir = "source/below"
	b.want(b.run(script("pwd"), second).Result, forge.Succeeded, 0, 0)
	work, temp := b.order.Folder, b.order.Folder+"/tmp"
	if b.options.Work != "" {
		work, temp = b.options.Work, b.options.Temp
	}
	b.stdout(strings.Join([]string{work + "/source", work + "/source/below", work + "/home", temp, work, ""}, "\n"))
	for _, made := range []string{"home/a", "tmp/b"} {
		b.readFile(made)
	}
}

func secretsArrive(b *bench) {
	b.order.Spec.Secrets = []forge.SecretUse{
		{Env: "TOKEN", Ref: forge.SecretRef{Name: "a/token"}}, {File: "key.pem", Ref: forge.SecretRef{Name: "a/key"}},
	}
	value := "canary-" + b.unique + "\n\xff"
	for _, use := range b.order.Spec.Secrets {
		b.secret = append(b.secret, executor.Secret{Use: use, Value: forge.NewSecret([]byte(value))})
	}
	w := b.start(script(`printf %s "$TOKEN"; cat "$FORGEYARD_SECRETS/key.pem"; ls -l "$FORGEYARD_SECRETS/key.pem" | cut -c1-10
		echo ready; sleep 60`))
	b.sink.Await("ready")
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range files {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "canary-"+b.unique) {
			b.Errorf("%s shows the secret", path)
		}
	}
	for _, path := range filesWith(b.T, filepath.Dir(b.order.Folder), "canary-"+b.unique) {
		b.Errorf("%s has the secret", path)
	}
	w.Kill()
	b.outcome(w)
	b.stdout(value + value + "-r--------\nready\n")
}

// filesWith returns the files below a folder that contain text.
func filesWith(t *testing.T, folder, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), text) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func secretWithZero(b *bench) {
	b.secret = []executor.Secret{{Use: forge.SecretUse{Env: "TOKEN"}, Value: forge.NewSecret([]byte("a\x00b"))}}
	w := b.prepare(script("echo no"))
	err := w.Start(b.secret)
	if setup := (*executor.SetupError)(nil); !asSetup(err, &setup) || setup.Class.Fault() != forge.FaultInfrastructure ||
		strings.Contains(err.Error(), "a\x00b") || !strings.Contains(err.Error(), "TOKEN") {
		b.Errorf("Start: %v", err)
	}
	b.want(b.outcome(w).Result, forge.SandboxSetup, 0, 0)
	b.stdout("")
}
