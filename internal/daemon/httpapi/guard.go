package httpapi

import (
	"context"
	"net/http"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// who is who asks.
type who struct {
	name  string // as audit events and runs have it
	role  forge.Role
	trust forge.TrustClass // of the runs that are submitted: it follows from who asks, never from the request
}

type whoKey struct{}

// asking is who asks; the zero value, who may do nothing, where nobody is known.
func asking(ctx context.Context) who {
	w, _ := ctx.Value(whoKey{}).(who)
	return w
}

// actor is the name of who asks, for audit events.
func actor(ctx context.Context) string { return asking(ctx).name }

// guard lets through who has the role that a route asks for.
func (s *Server) guard(needed forge.Role, serve http.HandlerFunc) http.HandlerFunc {
	if needed == anybody {
		return serve
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if by := asking(r.Context()); !by.role.May(needed) {
			turnAway(w)
			s.refuse(w, r, api.NewProblem(api.CodeForbidden, "this needs the role %v, and %s has %v", needed, by.name, by.role))
			return
		}
		serve(w, r)
	}
}
