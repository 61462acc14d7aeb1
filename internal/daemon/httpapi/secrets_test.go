package httpapi

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/forge"
)

const canary = "canary-7f3a91-value"

func (w *world) setSecret(project, name, value string) *api.Secret {
	w.t.Helper()
	s, err := w.client.SetSecret(w.ctx, project, name, forge.NewSecret([]byte(value)))
	w.must(err)
	return s
}

func TestASecretIsSetListedAndRemoved(t *testing.T) {
	w := newWorld(t)
	for version := range uint32(2) {
		s := w.setSecret("team/app", "codecov/token", canary)
		if s.Project != "team/app" || s.Name != "codecov/token" || s.Version != version+1 || s.Versions[0].By != "admin" || s.Versions[0].CreatedAt == nil {
			t.Errorf("set: %+v", s)
		}
	}
	w.setSecret("team/app", "deploy", canary)
	w.setSecret("other", "x", canary)
	first, err := w.client.Secrets(w.ctx, "team/app", api.Page{Limit: 1})
	w.must(err)
	if len(first.Items) != 1 || first.Items[0].Version != 2 || len(first.Items[0].Versions) != 2 || first.Next != "codecov/token" {
		t.Errorf("the first page: %+v", first)
	}
	second, err := w.client.Secrets(w.ctx, "team/app", api.Page{Limit: 2, Cursor: first.Next})
	w.must(err)
	if len(second.Items) != 1 || second.Items[0].Name != "deploy" || second.Next != "" {
		t.Errorf("the second page: %+v", second)
	}
	w.must(w.client.DeleteSecret(w.ctx, "team/app", forge.SecretRef{Name: "codecov/token", Version: 1}))
	w.must(w.client.DeleteSecret(w.ctx, "team/app", forge.SecretRef{Name: "deploy"}))
	left, err := w.client.Secrets(w.ctx, "team/app", api.Page{})
	w.must(err)
	if len(left.Items) != 1 || len(left.Items[0].Versions) != 1 || left.Items[0].Version != 2 {
		t.Errorf("left: %+v", left)
	}
}

func TestNoAnswerHasTheValueOfASecret(t *testing.T) {
	w := newWorld(t)
	w.setSecret("default", "token", canary)
	for _, path := range []string{"/projects/default/secrets", "/audit", "/projects/default/secrets/token"} {
		text, err := io.ReadAll(w.ask("GET", api.Base+path, "", "").Body)
		w.must(err)
		if bytes.Contains(text, []byte(canary)) {
			t.Errorf("GET %s: %s", path, text)
		}
	}
	if answer := w.ask("GET", api.Base+"/projects/default/secrets/token", "", ""); answer.StatusCode != 405 {
		t.Errorf("a value can be asked for: %s", answer.Status)
	}
}

func TestWhatIsWrongWithASecretIsSaidWithoutItsValue(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat(canary, forge.MaxSecret/len(canary)+1)
	for name, c := range map[string]struct {
		method, path, kind, body string
		code                     string
	}{
		"as JSON":          {"PUT", "/projects/default/secrets/token", api.TypeJSON, `{"value":"` + canary + `"}`, `"unsupported_media"`},
		"without a type":   {"PUT", "/projects/default/secrets/token", "", canary, `"unsupported_media"`},
		"too long":         {"PUT", "/projects/default/secrets/token", api.TypeSecret, long, `"too_large"`},
		"empty":            {"PUT", "/projects/default/secrets/token", api.TypeSecret, "", `"invalid"`},
		"no name":          {"PUT", "/projects/default/secrets/a%20b", api.TypeSecret, canary, `"invalid"`},
		"with a version":   {"PUT", "/projects/default/secrets/token@3", api.TypeSecret, canary, `"invalid"`},
		"no project":       {"PUT", "/projects/a%20b/secrets/token", api.TypeSecret, canary, `"invalid"`},
		"no such version":  {"DELETE", "/projects/default/secrets/token?version=7", "", "", `"not_found"`},
		"no version":       {"DELETE", "/projects/default/secrets/token?version=new", "", "", `"malformed"`},
		"an empty project": {"GET", "/projects/%20/secrets", "", "", `"invalid"`},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := io.ReadAll(w.ask(c.method, api.Base+c.path, c.kind, c.body).Body)
			w.must(err)
			if !bytes.Contains(text, []byte(`"code":`+c.code)) || bytes.Contains(text, []byte(canary)) {
				t.Errorf("answered %s", text)
			}
		})
	}
}

func TestAKeyThatIsMissingIsSaid(t *testing.T) {
	w := newWorld(t)
	w.must(os.WriteFile(filepath.Join(w.dir, "secret.key"), []byte("nothing"), 0o600))
	_, err := w.client.SetSecret(w.ctx, "default", "token", forge.NewSecret([]byte(canary)))
	if p := w.problem(err); p.Code != api.CodeConflict || !strings.Contains(p.Detail, "does not hold a key") || strings.Contains(p.Detail, canary) {
		t.Errorf("got %v", p)
	}
}
