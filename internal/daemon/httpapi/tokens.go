package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/access"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func (s *Server) createAccessToken(r *http.Request) (any, error) {
	var q api.AccessTokenRequest
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	request := access.Request{Name: q.Name, Actor: actor(r.Context())}
	var found forge.Problems
	var err error
	if q.Role != "" { // a missing one is told with whatever else is wrong
		if request.Role, err = forge.ParseRole(q.Role); err != nil {
			found = append(found, forge.Problem{Path: "role", What: err.Error()})
		}
	}
	if q.Trust != "" {
		if request.Trust, err = forge.ParseTrustClass(q.Trust); err != nil {
			found = append(found, forge.Problem{Path: "trust", What: err.Error()})
		}
	}
	if q.ExpiresIn != nil {
		if request.Lifetime = time.Duration(*q.ExpiresIn); request.Lifetime == 0 {
			found = append(found, forge.Problem{Path: "expires_in", What: "is zero; leave it out for a token that does not expire"})
		}
	}
	if len(found) > 0 {
		return nil, found
	}
	made, text, err := s.cfg.Access.Create(r.Context(), request)
	switch {
	case errors.Is(err, store.ErrExists):
		return nil, api.NewProblem(api.CodeConflict, "there is a token %q that is good; choose another name, or revoke it first: forgeyard token rm %s", q.Name, q.Name)
	case err != nil:
		return nil, err
	}
	defer text.Zero()
	out := accessTokenOf(&made)
	out.Token = string(text.Reveal())
	return out, nil
}

func (s *Server) listAccessTokens(r *http.Request) (any, error) {
	n, before, err := pageOf(r)
	if err != nil {
		return nil, err
	}
	out := api.List[api.AccessToken]{Items: []api.AccessToken{}}
	err = s.cfg.Store.View(r.Context(), func(v *store.View) error {
		tokens, next, err := v.AccessTokens(before, n)
		for i := range tokens {
			out.Items = append(out.Items, accessTokenOf(&tokens[i]))
		}
		if next > 0 {
			out.Next = strconv.FormatUint(next, 10)
		}
		return err
	})
	return out, err
}

func (s *Server) revokeAccessToken(r *http.Request) (any, error) {
	var id forge.AccessTokenID
	err := s.cfg.Store.View(r.Context(), func(v *store.View) (err error) {
		id, err = accessTokenID(v, r.PathValue("id"))
		return err
	})
	if err != nil {
		return nil, err
	}
	t, err := s.cfg.Access.Revoke(r.Context(), id, actor(r.Context()))
	if err != nil {
		return nil, err
	}
	return accessTokenOf(&t), nil
}

// accessTokenID finds a token by its name, of which there may be several while at most one is good, or by its id.
func accessTokenID(v *store.View, text string) (forge.AccessTokenID, error) {
	if t, err := v.AccessTokenByName(text, now()); !errors.Is(err, store.ErrNotFound) {
		return t.ID, err
	}
	if _, _, ok := span(text); !ok {
		return forge.AccessTokenID{}, api.NewProblem(api.CodeNotFound, "there is no token %s", clip(text)) // it is a name
	}
	return lookUp[forge.AccessTokenID](v, store.AccessIDs, "token", text)
}

func now() forge.WallTime { return forge.WallTime(time.Now().UnixMilli()) }

func accessTokenOf(t *store.AccessToken) api.AccessToken {
	out := api.AccessToken{
		ID: t.ID.String(), Name: t.Name, Role: t.Role.String(), Trust: t.Trust.String(), State: "good", By: t.Creator,
		CreatedAt: api.TimeOf(t.Created), ExpiresAt: api.TimeOf(t.Expires), UsedAt: api.TimeOf(t.Used), RevokedAt: api.TimeOf(t.Revoked),
	}
	switch {
	case t.Revoked != 0:
		out.State = "revoked"
	case t.Expired(now()):
		out.State = "expired"
	}
	return out
}

func (s *Server) whoami(r *http.Request) (any, error) {
	who := asking(r.Context())
	out := api.Caller{Name: who.Name, Role: who.Role.String(), Trust: who.Trust.String()}
	if who.Token != nil {
		out.ExpiresAt = api.TimeOf(who.Token.Expires)
	}
	return out, nil
}
