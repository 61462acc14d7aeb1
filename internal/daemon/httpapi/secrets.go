package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/secrets"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// errNoSecrets answers where the daemon has no place for secrets.
var errNoSecrets = api.NewProblem(api.CodeNotYet, "this daemon keeps no secrets")

func (s *Server) setSecret(r *http.Request) (any, error) {
	if s.cfg.Secrets == nil {
		return nil, errNoSecrets
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != api.TypeSecret {
		return nil, api.NewProblem(api.CodeMediaType, "send the value as it is, with Content-Type: %s", api.TypeSecret)
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, forge.MaxSecret+1))
	defer func() { clear(text) }()
	if err != nil {
		return nil, err
	}
	if len(text) > forge.MaxSecret {
		return nil, api.NewProblem(api.CodeTooLarge, "a secret may have %d bytes", forge.MaxSecret)
	}
	value := forge.NewSecret(text)
	defer value.Zero()
	project, name := r.PathValue("project"), r.PathValue("name")
	made, err := s.cfg.Secrets.Set(r.Context(), forge.ProjectName(project), name, value, actor(r.Context()))
	if err != nil {
		return nil, secretProblem(err)
	}
	return secretOf(project, store.SecretEntry{Name: name, Versions: []store.SecretVersion{made}}), nil
}

func (s *Server) listSecrets(r *http.Request) (any, error) {
	if s.cfg.Secrets == nil {
		return nil, errNoSecrets
	}
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	project := r.PathValue("project")
	out := api.List[api.Secret]{Items: []api.Secret{}}
	entries, next, err := s.cfg.Secrets.List(r.Context(), forge.ProjectName(project), r.URL.Query().Get("cursor"), n)
	for _, e := range entries {
		out.Items = append(out.Items, secretOf(project, e))
	}
	out.Next = next
	return out, err
}

func (s *Server) deleteSecret(r *http.Request) (any, error) {
	if s.cfg.Secrets == nil {
		return nil, errNoSecrets
	}
	ref := forge.SecretRef{Name: r.PathValue("name")}
	if text := r.URL.Query().Get("version"); text != "" {
		version, err := strconv.ParseUint(text, 10, 32)
		if err != nil || version == 0 {
			return nil, api.NewProblem(api.CodeMalformed, "version %q is no number from 1", clip(text))
		}
		ref.Version = uint32(version)
	}
	err := s.cfg.Secrets.Remove(r.Context(), forge.ProjectName(r.PathValue("project")), ref, actor(r.Context()))
	if err == store.ErrNotFound {
		return nil, api.NewProblem(api.CodeNotFound, "project %s has no secret %v", clip(r.PathValue("project")), ref)
	}
	if err != nil {
		return nil, fmt.Errorf("remove secret %v: %w", ref, err)
	}
	return nil, nil
}

// secretProblem makes a problem of what only secrets say.
func secretProblem(err error) error {
	var wrong *secrets.KeyError
	if errors.Is(err, secrets.ErrFull) || errors.As(err, &wrong) {
		return api.NewProblem(api.CodeConflict, "%v", err)
	}
	return err
}

func secretOf(project string, e store.SecretEntry) api.Secret {
	out := api.Secret{Project: project, Name: e.Name, Version: e.Versions[0].Version}
	for _, v := range e.Versions {
		out.Versions = append(out.Versions, api.SecretVersion{Version: v.Version, By: v.Actor, CreatedAt: api.TimeOf(v.Created)})
	}
	return out
}
