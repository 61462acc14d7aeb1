package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/access"
	"github.com/forgeyard/forgeyard/internal/forge"
)

type whoKey struct{}

// asking is who asks; the zero value, who may do nothing, where nobody is known.
func asking(ctx context.Context) access.Who {
	who, _ := ctx.Value(whoKey{}).(access.Who)
	return who
}

// actor is the name of who asks, for audit events.
func actor(ctx context.Context) string { return asking(ctx).Name }

// admit finds out who asks; of a route that is for anybody that is nobody, but by the socket. The request that it returns ends when
// who asks may ask no more.
func (s *Server) admit(over Over, r *http.Request) (in *http.Request, leave func(), err error) {
	ctx, who, leave := r.Context(), access.Who{}, func() {}
	if over == Socket {
		who = access.Socket()
	} else if _, route := s.mux.Handler(r); !s.open[route] {
		shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			shown = ""
		}
		if ctx, who, leave, err = s.cfg.Access.Enter(ctx, shown); err != nil {
			return nil, nil, err
		}
	}
	return r.WithContext(context.WithValue(ctx, whoKey{}, who)), leave, nil
}

// guard lets through who has the role that a route asks for.
func (s *Server) guard(needed forge.Role, serve http.HandlerFunc) http.HandlerFunc {
	if needed == anybody {
		return serve
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if who := asking(r.Context()); !who.Role.May(needed) {
			turnAway(w)
			s.refuse(w, r, api.NewProblem(api.CodeForbidden,
				"this needs the role %v, and %s has the role %v; whoever administers the daemon makes another token: %s",
				needed, who.Name, who.Role, createCommand(needed, "NAME")))
			return
		}
		serve(w, r)
	}
}

// createCommand is what an administrator types to let somebody in.
func createCommand(role forge.Role, name string) string {
	return "forgeyard token create --role " + role.String() + " --name " + name
}

// accessProblem makes a problem of why somebody is not let in; nil for what is none of that.
func accessProblem(err error) *api.Problem {
	var ended *access.EndedError
	switch {
	case errors.As(err, &ended):
		code := api.CodeTokenExpired
		if ended.Revoked {
			code = api.CodeTokenRevoked
		}
		return api.NewProblem(code, "%v; whoever administers the daemon makes a new one: %s", ended, createCommand(ended.Role, ended.Name))
	case errors.Is(err, access.ErrNothing):
		return api.NewProblem(api.CodeUnauthenticated,
			"show a token as Authorization: Bearer …; whoever administers the daemon makes one: %s. The one of the daemon's folder is admin.token",
			createCommand(forge.RoleDeveloper, "NAME"))
	case errors.Is(err, access.ErrUnknown), errors.Is(err, access.ErrTypo), errors.Is(err, access.ErrVersion), errors.Is(err, access.ErrEnrolment):
		return api.NewProblem(api.CodeUnauthenticated, "the token that was shown %v", err)
	}
	return nil
}
