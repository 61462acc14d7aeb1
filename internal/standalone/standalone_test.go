package standalone_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cli"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/executor/process"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/standalone"
)

func TestMain(m *testing.M) {
	native.Main()
	process.Supervise()
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// folder returns a data folder with a path short enough for a socket.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func options(data string) cli.LocalOptions {
	return cli.LocalOptions{Data: data, Log: slog.New(slog.DiscardHandler)}
}

func yard() standalone.Yard {
	return standalone.Yard{Version: "test", Getenv: func(string) string { return "" }}
}

func TestALineOfTheLogNamesItsProgramAndOneComponent(t *testing.T) {
	o := options(folder(t))
	var log bytes.Buffer // a handler writes one line at a time, and all have ended when Run has
	o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if err := yard().Run(t.Context(), context.Background(), o, func(context.Context, string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	components := 0
	for line := range strings.Lines(log.String()) {
		n := strings.Count(line, `"component":`)
		components += n
		if n > 1 || strings.Count(line, `"program":`) != 1 {
			t.Error(line)
		}
	}
	if components == 0 {
		t.Errorf("no component has logged anything:\n%s", &log)
	}
}

func TestTheOwnerOfAFolderIsFoundWhileItServes(t *testing.T) {
	data := folder(t)
	if got := yard().Find(data); got != "" {
		t.Fatalf("found %s on an empty folder", got)
	}
	err := yard().Run(t.Context(), context.Background(), options(data), func(_ context.Context, endpoint string) error {
		if got := yard().Find(data); got != endpoint || !strings.HasPrefix(got, "unix://"+data) {
			t.Errorf("found %q, served at %q", got, endpoint)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := yard().Find(data); got != "" {
		t.Errorf("found %s when nobody serves any more", got)
	}
}

func TestWhatAFolderHoldsIsLookedAtWithoutAnAgent(t *testing.T) {
	data := folder(t)
	if endpoint, _, err := yard().Look(t.Context(), options(filepath.Join(data, "none"))); endpoint != "" || err != nil {
		t.Errorf("there is %q in a folder that is not there: %v", endpoint, err)
	}
	nothing := func(context.Context, string) error { return nil }
	if err := yard().Run(t.Context(), context.Background(), options(data), nothing); err != nil {
		t.Fatal(err)
	}
	endpoint, leave, err := yard().Look(t.Context(), options(data))
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.NewClient(endpoint, api.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	list, err := client.Runners(t.Context(), api.Page{})
	if err != nil || len(list.Items) != 1 || list.Items[0].State == "online" {
		t.Errorf("the runners: %+v, %v", list, err)
	}
	if got := yard().Find(data); got != "" {
		t.Errorf("work would be given to %s, which has no agent", got)
	}
	ran := make(chan error, 1)
	go func() { ran <- yard().Run(t.Context(), context.Background(), options(data), nothing) }()
	if err := leave(); err != nil { // the other one waits for this
		t.Error(err)
	}
	if err := <-ran; err != nil {
		t.Errorf("who came meanwhile: %v", err)
	}
}

func TestALookAsksTheOwnerOfTheFolder(t *testing.T) {
	data := folder(t)
	err := yard().Run(t.Context(), context.Background(), options(data), func(ctx context.Context, owner string) error {
		endpoint, leave, err := yard().Look(ctx, options(data))
		if endpoint != owner || err != nil {
			t.Errorf("asked %q and not %q: %v", endpoint, owner, err)
		}
		return leave()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The agent may end before whoever uses it has heard of the force, and what that says is more than the agent's end.
func TestWhoIsForcedLeavesByItself(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	force, now := context.WithCancel(t.Context())
	left := errors.New("left")
	data := folder(t)
	err := yard().Run(ctx, force, options(data), func(serving context.Context, _ string) error {
		interrupt()
		now()
		lock, err := os.Open(filepath.Join(data, "agent", "lock"))
		if err != nil {
			return err
		}
		for disk.Lock(lock) != nil && serving.Err() == nil {
			runtime.Gosched() // until the agent has let go of its folder
		}
		select {
		case <-serving.Done():
			t.Errorf("it is not served any more: %v", context.Cause(serving))
		case <-time.After(100 * time.Millisecond): // which is long for a process that is about to say that
		}
		return errors.Join(left, lock.Close())
	})
	if !errors.Is(err, left) || err.Error() != left.Error() {
		t.Errorf("it ended with %v", err)
	}
}

// A run that is submitted while its owner is about to stop has been accepted, so the owner serves it, too.
func TestARunThatComesAsTheOwnerStopsIsServedToItsEnd(t *testing.T) {
	o := options(folder(t))
	const body = `{"jobs": [{"key": "late", "spec": {"steps": [{"argv": ["true"]}]}}]}`
	var late errgroup.Group
	err := yard().Run(t.Context(), context.Background(), o, func(_ context.Context, endpoint string) error {
		conn, err := net.Dial("unix", strings.TrimPrefix(endpoint, "unix://"))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(conn, "POST %s/runs HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", api.Base, len(body))
		answers := bufio.NewReader(conn)
		if line, failed := answers.ReadString('\n'); failed != nil || !strings.Contains(line, " 100 ") { // it reads what is submitted
			return errors.Join(fmt.Errorf("the daemon says %q", line), err, failed)
		}
		late.Go(func() error {
			for yard().Find(o.Data) != "" {
				runtime.Gosched() // until it takes no other request any more
			}
			_, err := conn.Write([]byte(body))
			text, failed := io.ReadAll(answers)
			if !strings.Contains(string(text), " 201 ") {
				failed = errors.Join(failed, fmt.Errorf("the daemon says %q", text))
			}
			return errors.Join(err, failed, conn.Close())
		})
		return nil
	})
	if err := errors.Join(err, late.Wait()); err != nil {
		t.Fatal(err)
	}
	endpoint, leave, err := yard().Look(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.NewClient(endpoint, api.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Runs(t.Context(), api.RunFilter{}, api.Page{})
	client.Close()
	if err := errors.Join(err, leave()); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].State != "Succeeded" {
		t.Errorf("the run that came late: %+v", list.Items)
	}
}

func TestASocketThatNobodyServesIsNobody(t *testing.T) {
	data := folder(t)
	if err := os.Mkdir(filepath.Join(data, "daemon"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(data, "daemon", "http.sock"))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := yard().Find(data); got != "" {
		t.Errorf("found %s", got)
	}
}

func TestWhatTheUserWantedComesBackAsItWas(t *testing.T) {
	data := folder(t)
	for range 2 { // the second time the agent is enrolled already
		err := yard().Run(t.Context(), context.Background(), options(data), func(context.Context, string) error { return os.ErrInvalid })
		if !errors.Is(err, os.ErrInvalid) || err.Error() != os.ErrInvalid.Error() {
			t.Errorf("err = %v", err)
		}
	}
}

func TestAFolderWhosePathIsTooLongForASocketSaysSo(t *testing.T) {
	data := filepath.Join(folder(t), strings.Repeat("long", 30))
	err := yard().Run(t.Context(), context.Background(), options(data), func(context.Context, string) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "use a shorter one: --data DIR") {
		t.Errorf("err = %v", err)
	}
}

func TestAnAgentOfAnotherDaemonIsNotUsed(t *testing.T) {
	data := folder(t)
	nothing := func(context.Context, string) error { return nil }
	if err := yard().Run(t.Context(), context.Background(), options(data), nothing); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(data, "daemon")); err != nil {
		t.Fatal(err)
	}
	err := yard().Run(t.Context(), context.Background(), options(data), nothing)
	if err == nil || !strings.Contains(err.Error(), "belongs to another daemon") {
		t.Errorf("err = %v", err)
	}
}

// A user who deletes the runner of this process gets a new one with the next run, not an agent that is locked out.
func TestAnAgentThatWasDeletedHereEnrolsAnew(t *testing.T) {
	data := folder(t)
	local := func() (id string) {
		t.Helper()
		err := yard().Run(t.Context(), context.Background(), options(data), func(ctx context.Context, endpoint string) error {
			client, err := api.NewClient(endpoint, api.Options{})
			if err != nil {
				return err
			}
			defer client.Close()
			r, err := client.Runner(ctx, "local")
			if err != nil {
				return err
			}
			id = r.ID
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := local()
	if again := local(); again != first {
		t.Fatalf("the second time it is runner %s, not %s", again, first)
	}
	s, err := store.Open(t.Context(), filepath.Join(data, "daemon"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runner, err := forge.ParseID[forge.RunnerID](first)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), store.ClassState, func(tx *store.Tx) error { return tx.DeleteRunner(runner) })
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if next := local(); next == first {
		t.Error("it is the runner that was deleted")
	}
}
