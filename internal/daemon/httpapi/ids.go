package httpapi

import (
	"net/http"
	"strings"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// idDigits is the length of an id's text.
const idDigits = 26

// lookUp finds the id that a text names: the whole of it or its beginning, in capitals or not.
func lookUp[T ~struct{ forge.ULID }](v *store.View, kind store.IDs, what, text string) (T, error) {
	var none T
	low, high, ok := span(text)
	if !ok {
		return none, api.NewProblem(api.CodeNotFound,
			"%q is no id of a %s: at least the first %d of its %d digits", clip(text), what, api.MinIDPrefix, idDigits)
	}
	found, err := v.Between(kind, low, high, 2)
	switch {
	case err != nil:
		return none, err
	case len(found) == 0:
		return none, api.NewProblem(api.CodeNotFound, "there is no %s %s", what, text)
	case len(found) > 1:
		return none, api.NewProblem(api.CodeAmbiguous, "%s is the beginning of several, as of %s %s and of %s", text, what, found[0], found[1])
	}
	return forge.MakeID[T](found[0]), nil
}

// span is the range of ids that begin with a text.
func span(text string) (low, high forge.ULID, ok bool) {
	text = strings.ToUpper(text)
	if len(text) < api.MinIDPrefix || len(text) > idDigits {
		return low, high, false
	}
	first, err := forge.ParseID[forge.RunID](text + strings.Repeat("0", idDigits-len(text)))
	last, err2 := forge.ParseID[forge.RunID](text + strings.Repeat("Z", idDigits-len(text)))
	return first.ULID, last.ULID, err == nil && err2 == nil
}

// runnerID finds a runner by its name or id.
func runnerID(v *store.View, text string) (forge.RunnerID, error) {
	if r, err := v.RunnerByName(text); err == nil {
		return r.ID, nil
	}
	if _, _, ok := span(text); !ok {
		return forge.RunnerID{}, api.NewProblem(api.CodeNotFound, "there is no runner %s", clip(text)) // it is a name
	}
	return lookUp[forge.RunnerID](v, store.RunnerIDs, "runner", text)
}

// verb takes the path's last element apart: ID:VERB.
func verb(r *http.Request) (id, verb string, err error) {
	id, verb, ok := strings.Cut(r.PathValue("id"), ":")
	if !ok {
		return "", "", api.NewProblem(api.CodeMethod, "a verb is missing behind the id, as in %s:cancel", clip(id))
	}
	return id, verb, nil
}

func clip(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
