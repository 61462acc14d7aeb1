package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/control"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func (s *Server) listRunners(r *http.Request) (any, error) {
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	var after forge.RunnerID
	if text := r.URL.Query().Get("cursor"); text != "" {
		if after, err = forge.ParseID[forge.RunnerID](text); err != nil {
			return nil, api.NewProblem(api.CodeMalformed, "the cursor is none that was given out")
		}
	}
	out := api.List[api.Runner]{Items: []api.Runner{}}
	err = s.cfg.Store.View(r.Context(), func(v *store.View) error {
		runners, err := v.Runners(after, n)
		if err != nil {
			return err
		}
		for i := range runners {
			one, err := s.runnerOf(v, &runners[i])
			if err != nil {
				return err
			}
			out.Items = append(out.Items, one)
		}
		if len(runners) == n {
			out.Next = runners[n-1].ID.String()
		}
		return nil
	})
	return out, err
}

func (s *Server) getRunner(r *http.Request) (any, error) {
	return s.runner(r, r.PathValue("id"))
}

func (s *Server) runner(r *http.Request, text string) (out api.Runner, err error) {
	err = s.cfg.Store.View(r.Context(), func(v *store.View) error {
		id, err := runnerID(v, text)
		if err != nil {
			return err
		}
		stored, err := v.Runner(id)
		if err != nil {
			return err
		}
		out, err = s.runnerOf(v, &stored)
		return err
	})
	return out, err
}

// runnerOf writes a runner with what it holds and its certificate.
func (s *Server) runnerOf(v *store.View, r *store.Runner) (api.Runner, error) {
	there := s.cfg.Control.Presence(r.ID)
	out := api.Runner{
		ID: r.ID.String(), Name: r.Name, State: runnerState(r, there), Pool: r.Pool, Trust: r.Trust.String(), Labels: r.Labels,
		Slots: r.Slots, Connected: there.Connected, Draining: r.Draining || there.Draining, Disabled: r.Disabled, Revoked: r.Revoked, Version: r.Version,
		CreatedAt: api.TimeOf(r.Created), SeenAt: api.TimeOf(r.Seen), LastReject: rejectOf(r),
	}
	if s.cfg.Speaks != nil {
		out.Protocol = s.cfg.Speaks(r.ID)
	}
	if f := there.Refused; f != nil {
		out.Refused = &api.Refusal{Reason: f.Reason.String(), Why: f.Sentence(), At: &f.At}
	}
	if r.Health.Status != 0 {
		out.Health = r.Health.Status.String()
	}
	for _, c := range r.Health.Checks {
		out.Checks = append(out.Checks, api.HealthCheck{Kind: c.Kind.String(), Status: c.Status.String(), Detail: c.Detail})
	}
	if r.CapabilitiesAt != 0 {
		out.Capabilities = capabilitiesOf(r)
	}
	if r.Summary != (forge.ResourceSummary{}) {
		out.Load = loadOf(&r.Summary)
	}
	leases, err := v.OpenLeases(r.ID)
	if err != nil {
		return out, err
	}
	for i := range leases {
		out.Active = append(out.Active, leases[i].Lease.Context.Attempt.String())
	}
	certificates, err := v.Certificates(r.ID, 1)
	for _, c := range certificates {
		out.Certificate = &api.Certificate{Serial: c.Serial, ExpiresAt: api.TimeOf(c.NotAfter), Revoked: r.Revoked}
	}
	return out, err
}

func runnerState(r *store.Runner, there control.Presence) string {
	switch {
	case r.Revoked:
		return "revoked"
	case r.Disabled:
		return "disabled"
	case there.Connected && (r.Draining || there.Draining):
		return "draining"
	case there.Connected:
		return "online"
	case there.Refused != nil:
		return there.Refused.Word()
	case r.Session.Session.IsZero():
		return "never"
	}
	return "offline"
}

func rejectOf(r *store.Runner) *api.Reject {
	if r.LastReject == 0 {
		return nil
	}
	return &api.Reject{Reason: control.RejectReason(r.LastReject), At: api.TimeOf(r.LastRejectAt)}
}

func loadOf(s *forge.ResourceSummary) *api.Load {
	return &api.Load{
		Total: api.ResourcesOf(s.Total), Reserved: api.ResourcesOf(s.Reserved), Active: api.ResourcesOf(s.Active),
		Free: api.ResourcesOf(s.Free), Pressure: s.Pressure.String(),
	}
}

func capabilitiesOf(r *store.Runner) *api.Capabilities {
	c := &r.Capabilities
	out := &api.Capabilities{
		OS: c.Platform.OS, Arch: c.Platform.Arch, System: c.Platform.Version, Resources: api.ResourcesOf(c.Resources),
		Labels: c.Labels, Features: c.Features, Digest: r.CapabilityID.String(),
	}
	for _, b := range c.Sandboxes {
		out.Sandboxes = append(out.Sandboxes, api.Sandbox{Kind: b.Kind.String(), Levels: b.Levels})
	}
	for _, d := range c.Devices {
		out.Devices = append(out.Devices, api.Device(d))
	}
	for _, t := range c.Toolchains {
		out.Toolchains = append(out.Toolchains, forge.ToolchainNeed{ID: t.ID, Version: t.Version}.String())
	}
	return out
}

func (s *Server) runnerVerb(r *http.Request) (any, error) {
	text, verb, err := verb(r)
	if err != nil {
		return nil, err
	}
	id, err := s.findRunner(r, text)
	if err != nil {
		return nil, err
	}
	_, err = s.cfg.Control.SetRunner(r.Context(), id, control.Verb(verb), actor(r.Context()))
	if err == control.ErrVerb {
		return nil, api.NewProblem(api.CodeNoRoute, "a runner can be told to drain, resume, disable, enable and revoke")
	}
	if err != nil {
		return nil, err
	}
	return s.runner(r, id.String())
}

func (s *Server) findRunner(r *http.Request, text string) (id forge.RunnerID, err error) {
	err = s.cfg.Store.View(r.Context(), func(v *store.View) (err error) {
		id, err = runnerID(v, text)
		return err
	})
	return id, err
}

func (s *Server) deleteRunner(r *http.Request) (any, error) {
	id, err := s.findRunner(r, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return nil, s.cfg.Control.DeleteRunner(r.Context(), id, actor(r.Context()))
}

func (s *Server) explainRunner(r *http.Request) (any, error) {
	id, err := s.findRunner(r, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	w, err := s.cfg.Control.ExplainRunner(r.Context(), id)
	if err != nil {
		return nil, err
	}
	out := api.RunnerExplanation{
		Runner: id.String(), Summary: w.Summary, Details: w.Details, Free: api.ResourcesOf(w.Free), LastReject: rejectOf(&w.Runner),
		Jobs: passedOf(w.Jobs),
	}
	if !w.HeldFor.IsZero() {
		out.HeldFor = w.HeldFor.String()
	}
	return out, nil
}

func (s *Server) createRunner(r *http.Request) (any, error) {
	var q api.RunnerRequest
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	request, err := tokenRequest(r, q.Name, q.Pool, q.Trust, q.Labels, q.Slots, q.ExpiresIn)
	if err != nil {
		return nil, err
	}
	made, token, secret, err := s.cfg.Control.CreateRunner(r.Context(), request)
	if err != nil {
		return nil, err
	}
	runner, err := s.runner(r, made.ID.String())
	out := api.RunnerCreated{Runner: runner, Token: s.tokenOf(&token)}
	out.Token.Token = string(secret.Reveal())
	return out, err
}

func (s *Server) createToken(r *http.Request) (any, error) {
	var q api.TokenRequest
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	request, err := tokenRequest(r, q.Name, q.Pool, q.Trust, q.Labels, q.Slots, q.ExpiresIn)
	if err != nil {
		return nil, err
	}
	token, secret, err := s.cfg.Control.MintToken(r.Context(), request)
	if err != nil {
		return nil, err
	}
	out := s.tokenOf(&token)
	out.Token = string(secret.Reveal())
	return out, nil
}

// tokenRequest turns the common fields of both requests into values. A zero that was written is not a default.
func tokenRequest(r *http.Request, name, pool, class string, labels []string, slots *uint32, expires *api.Duration) (control.TokenRequest, error) {
	out := control.TokenRequest{Name: name, Pool: pool, Labels: labels, Actor: actor(r.Context())}
	var err error
	if class != "" {
		if out.Trust, err = forge.ParseTrustClass(class); err != nil {
			return out, forge.Problems{{Path: "trust", What: err.Error()}}
		}
	}
	if slots != nil {
		if *slots == 0 || *slots > forge.MaxSlots {
			return out, forge.Problems{{Path: "slots", What: strconv.FormatUint(uint64(*slots), 10) + " is not within 1 and " + strconv.FormatUint(uint64(forge.MaxSlots), 10)}}
		}
		out.Slots = int(*slots)
	}
	if expires != nil {
		if *expires == 0 {
			return out, forge.Problems{{Path: "expires_in", What: "is zero"}}
		}
		out.Lifetime = time.Duration(*expires)
	}
	return out, nil
}

func (s *Server) tokenOf(t *store.Token) api.EnrollmentToken {
	out := api.EnrollmentToken{
		ID: control.TokenID(t), Name: t.Name, Pool: t.Pool, Trust: t.Trust.String(), Labels: t.Labels, Slots: t.Slots, State: "open",
		Fingerprint: s.cfg.Fingerprint, CreatedAt: api.TimeOf(t.Created), ExpiresAt: api.TimeOf(t.Expires),
	}
	if !t.Runner.IsZero() {
		out.Runner = t.Runner.String()
	}
	switch {
	case !t.UsedBy.IsZero():
		out.State = "used"
	case t.Expires <= forge.WallTime(time.Now().UnixMilli()):
		out.State = "expired"
	}
	return out
}

func (s *Server) listTokens(r *http.Request) (any, error) {
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	out := api.List[api.EnrollmentToken]{Items: []api.EnrollmentToken{}}
	err = s.cfg.Store.View(r.Context(), func(v *store.View) error {
		tokens, err := v.Tokens(n)
		for i := range tokens {
			out.Items = append(out.Items, s.tokenOf(&tokens[i]))
		}
		return err
	})
	return out, err
}
