package httpapi

import (
	"net/http"
	"strings"

	documents "github.com/forgeyard/forgeyard/api"
	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// route is one line of the interface.
type route struct {
	method string
	path   string     // below api.Base, or from the root with a leading slash; a verb stands behind {id}
	role   forge.Role // the least that may ask; anybody: without a token too
	about  string
	endpoint
	shape
}

// The roles as the table says them.
const (
	anybody   = forge.Role(0)
	viewer    = forge.RoleViewer
	developer = forge.RoleDeveloper
	admin     = forge.RoleAdmin
)

// endpoint answers the requests of a route.
type endpoint struct {
	status int // of an answer that is no problem, mostly
	serve  http.HandlerFunc
}

// shape is what goes in and what comes out, for the description of the interface.
type shape struct {
	with  string // the names of parameters and headers that may be given besides those of the path
	in    any    // the body: a value of the type that is sent as JSON, or a media
	out   any    // the answer: a value of the type that is sent as JSON, a media, a feed, or several of them
	verbs []verbShape
}

// media is a body of some type that is not JSON.
type media string

// feed is an event stream: what each event carries, by its name.
type feed []feedEvent

type feedEvent struct {
	name string
	data any
}

// several are answers of different types, among which parameters choose.
type several []any

// verbShape is a verb of a route whose path ends in {id}.
type verbShape struct{ name, about string }

// table lists every route. A description of the interface is made from it.
func (s *Server) table() []route {
	return []route{
		{"POST", "runs", developer, "start a run", s.call(http.StatusCreated, s.submit), shape{with: "Idempotency-Key", in: api.RunRequest{}, out: api.Run{}}},
		{"GET", "runs", viewer, "list runs, newest first", s.call(http.StatusOK, s.listRuns), shape{with: "project state limit cursor", out: api.List[api.Run]{}}},
		{"GET", "runs/{id}", viewer, "a run with its jobs", s.call(http.StatusOK, s.getRun), shape{out: api.Run{}}},
		{"POST", "runs/{id}", developer, "do something to a run", s.call(http.StatusOK, s.runVerb), shape{out: api.Run{}, verbs: []verbShape{
			{"cancel", "ask for the end of every job of a run; may be repeated"},
		}}},
		{"GET", "runs/{id}/events", viewer, "the changes of a run, as an event stream", s.stream(s.watchRun), shape{out: feed{
			{api.EventChange, api.RunEvent{}}, {api.EventEnd, api.Run{}},
		}}},
		{"GET", "jobs/{id}", viewer, "a job with its attempts and its definition", s.call(http.StatusOK, s.getJob), shape{out: api.Job{}}},
		{"POST", "jobs/{id}", developer, "do something to a job", s.call(http.StatusOK, s.jobVerb), shape{out: api.Job{}, verbs: []verbShape{
			{"cancel", "ask for the end of a job; may be repeated"},
		}}},
		{"GET", "jobs/{id}/explain", viewer, "why a job is where it is", s.call(http.StatusOK, s.explainJob), shape{out: api.Explanation{}}},
		{"GET", "jobs/{id}/attempts", viewer, "the attempts of a job, oldest first", s.call(http.StatusOK, s.listAttempts), shape{out: api.List[api.Attempt]{}}},
		{"GET", "attempts/{id}", viewer, "an attempt", s.call(http.StatusOK, s.getAttempt), shape{out: api.Attempt{}}},
		{"GET", "attempts/{id}/log", viewer, "the log of an attempt, as an event stream or raw, or what is found in it", s.stream(s.readLog), shape{
			with: "from_seq tail follow format q ignore_case after limit Last-Event-ID Range",
			out: several{feed{
				{api.EventOutput, api.LogOutput{}},
				{api.EventStepStarted, api.LogStep{}},
				{api.EventStepFinished, api.LogStep{}},
				{api.EventAnnotation, api.LogNote{}},
				{api.EventNotice, api.LogNote{}},
				{api.EventGap, api.LogGap{}},
				{api.EventLag, api.LogLag{}},
				{api.EventEnd, api.LogEnd{}},
			}, media(api.TypeRawLog), api.LogMatches{}},
		}},
		{"GET", "artifacts", viewer, "what a run, a job or an attempt kept", s.call(http.StatusOK, s.listArtifacts), shape{with: "run job attempt limit cursor", out: api.List[api.Artifact]{}}},
		{"GET", "artifacts/{id}", viewer, "an artifact with one folder of it", s.call(http.StatusOK, s.getArtifact), shape{with: "path limit cursor", out: api.ArtifactFolder{}}},
		{"GET", "artifacts/{id}/content", viewer, "a file of an artifact, or a folder as an archive", s.content(s.getContent), shape{
			with: "path format Range", out: several{media(api.TypeRawLog), media(api.TypeTar)},
		}},
		{"POST", "cas:missing", developer, "which objects a project has not got", s.call(http.StatusOK, s.missing), shape{in: api.MissingRequest{}, out: api.MissingAnswer{}}},
		{"POST", "cas:batch", developer, "store many small objects", s.take(s.batches, s.putBatch), shape{with: "project Content-Encoding", in: media(api.TypeObjects), out: api.BatchAnswer{}}},
		{"GET", "cas:stat", viewer, "what the store has", s.content(s.json(s.statObjects)), shape{out: api.ObjectStat{}}},
		{"POST", "cas:verify", admin, "look at every object, as an event stream", s.stream(s.verifyObjects), shape{out: feed{
			{api.EventFinding, api.ObjectFinding{}}, {api.EventEnd, api.ObjectReport{}},
		}}},
		{"HEAD", "cas/{ref}", viewer, "whether an object is there, and how much of one that is not", s.content(s.headObject), shape{with: "project"}},
		{"GET", "cas/{ref}", viewer, "the bytes of an object", s.content(s.getObject), shape{with: "project Range", out: media(api.TypeRawLog)}},
		{"PUT", "cas/{ref}", developer, "store an object, or more of it", s.take(s.uploads, s.putObject), shape{with: "project Upload-Offset", in: media(api.TypeRawLog), out: api.Upload{}}},
		{"GET", "cas/{ref}/explain", viewer, "why an object is kept", s.call(http.StatusOK, s.explainObject), shape{out: api.ObjectExplanation{}}},
		{"GET", "runners", viewer, "list runners", s.call(http.StatusOK, s.listRunners), shape{with: "limit cursor", out: api.List[api.Runner]{}}},
		{"POST", "runners", admin, "make a runner and a token for its machine", s.call(http.StatusCreated, s.createRunner), shape{in: api.RunnerRequest{}, out: api.RunnerCreated{}}},
		{"GET", "runners/{id}", viewer, "a runner", s.call(http.StatusOK, s.getRunner), shape{out: api.Runner{}}},
		{"POST", "runners/{id}", admin, "do something to a runner", s.call(http.StatusOK, s.runnerVerb), shape{out: api.Runner{}, verbs: []verbShape{
			{"drain", "give it no new lease"},
			{"resume", "end that"},
			{"disable", "stop what it runs; it may not connect"},
			{"enable", "end that"},
			{"revoke", "for good: no certificate of it is accepted any more"},
		}}},
		{"DELETE", "runners/{id}", admin, "remove a runner that holds nothing", s.call(http.StatusNoContent, s.deleteRunner), shape{}},
		{"GET", "runners/{id}/explain", viewer, "why a runner gets no more jobs", s.call(http.StatusOK, s.explainRunner), shape{out: api.RunnerExplanation{}}},
		{"POST", "enrollment-tokens", admin, "make an enrolment token", s.call(http.StatusCreated, s.createToken), shape{in: api.TokenRequest{}, out: api.EnrollmentToken{}}},
		{"GET", "enrollment-tokens", admin, "list enrolment tokens, newest first", s.call(http.StatusOK, s.listTokens), shape{with: "limit", out: api.List[api.EnrollmentToken]{}}},
		{"GET", "projects/{project}/secrets", developer, "list the secrets of a project, without their values", s.call(http.StatusOK, s.listSecrets), shape{with: "limit cursor", out: api.List[api.Secret]{}}},
		{"PUT", "projects/{project}/secrets/{name...}", admin, "set a secret: a new version, its value the body", s.call(http.StatusOK, s.setSecret), shape{in: media(api.TypeSecret), out: api.Secret{}}},
		{"GET", "projects/{project}/caches", viewer, "list the caches of a project by key", s.call(http.StatusOK, s.listCaches), shape{with: "key prefix limit cursor", out: api.List[api.KeptCache]{}}},
		{"DELETE", "projects/{project}/caches", developer, "forget caches: one key, those that begin so, or all", s.call(http.StatusOK, s.deleteCaches), shape{with: "key prefix all", out: api.CachesRemoved{}}},
		{"DELETE", "projects/{project}/secrets/{name...}", admin, "remove a secret, or a version of it", s.call(http.StatusNoContent, s.deleteSecret), shape{with: "version"}},
		{"POST", "tokens", admin, "make a token that lets somebody use this interface", s.call(http.StatusCreated, s.createAccessToken), shape{in: api.AccessTokenRequest{}, out: api.AccessToken{}}},
		{"GET", "tokens", admin, "list those tokens, newest first, without their texts", s.call(http.StatusOK, s.listAccessTokens), shape{with: "limit cursor", out: api.List[api.AccessToken]{}}},
		{"DELETE", "tokens/{id}", admin, "revoke one of those tokens, by its id or name: what is under way with it ends", s.call(http.StatusOK, s.revokeAccessToken), shape{out: api.AccessToken{}}},
		{"GET", "whoami", viewer, "who asks, and with which role", s.call(http.StatusOK, s.whoami), shape{out: api.Caller{}}},
		{"GET", "transport/sessions", viewer, "the connections of agents", s.call(http.StatusOK, s.sessions), shape{out: api.List[api.Session]{}}},
		{"GET", "transport/status", viewer, "the daemon's own side", s.call(http.StatusOK, s.transport), shape{out: api.TransportStatus{}}},
		{"GET", "transport/protocols", viewer, "what the daemon speaks", s.call(http.StatusOK, s.protocols), shape{out: api.Protocols{}}},
		{"GET", "audit", admin, "audit events, newest first", s.call(http.StatusOK, s.audit), shape{with: "limit cursor", out: api.List[api.AuditEntry]{}}},
		{"GET", "version", viewer, "what the daemon is", s.call(http.StatusOK, s.version), shape{out: api.Version{}}},
		{"GET", "/healthz", anybody, "whether the process lives", s.call(http.StatusOK, s.healthz), shape{out: api.Health{}}},
		{"GET", "/readyz", anybody, "whether the daemon can work", endpoint{http.StatusOK, s.readyz}, shape{out: api.Health{}}},
		{"GET", "/schema/openapi.v1.yaml", anybody, "this description", document(typeYAML, documents.OpenAPI), shape{out: media(typeYAML)}},
		{"GET", "/schema/pipeline.v1.json", anybody, "the JSON Schema of the pipeline file", document(typeSchema, documents.PipelineSchema), shape{out: media(typeSchema)}},
		{"GET", "/metrics", viewer, "figures for Prometheus", endpoint{http.StatusOK, s.metrics}, shape{out: media("text/plain")}},
	}
}

func (rt route) pattern() string {
	if strings.HasPrefix(rt.path, "/") {
		return rt.path
	}
	return api.Base + "/" + rt.path
}
