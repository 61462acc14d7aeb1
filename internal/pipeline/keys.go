package pipeline

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// pipelineFile is the whole of a file.
var pipelineFile = object("pipeline", []key[File]{
	must(ignored[File]("version", "version of the format: 1", choice([]string{"1"}, func(string) bool { return true }))),
	field("name", "title of the runs, for people", texts, func(f *File) *Text { return &f.Name }),
	field("on", "events on which a server runs it by itself", triggers, func(f *File) *Triggers { return &f.On }),
	field("env", "variables of every job", variables, func(f *File) *[]Var { return &f.Env }),
	field("defaults", "what holds for each job that does not say otherwise", defaults, func(f *File) *Defaults { return &f.Defaults }),
	field("concurrency", "keeps runs of one group from running at the same time", concurrency, func(f *File) **Concurrency { return &f.Concurrency }),
	must(field("jobs", "the jobs, by their keys", jobs, func(f *File) *[]*Job { return &f.Jobs })),
	ignored[File]("x-*", "whatever the author likes, to be named by anchors", value[bool]{&shape{}, func(*reader, *yaml.Node) (bool, bool) { return true, true }}),
	later[File]("inputs", "values that are asked for when a run is started"),
})

// jobs are keyed by name.
var jobs = value[[]*Job]{
	&shape{kind: "object", values: job.shape, pattern: namePattern, least: 1, most: MaxJobs},
	func(r *reader, n *yaml.Node) ([]*Job, bool) {
		all, ok := mapping(job, nameHint, MaxJobs).read(r, n)
		out := make([]*Job, 0, len(all))
		for _, j := range all {
			made := j.value
			made.Key, made.At, made.partial = forge.JobKey(j.name), j.at, !j.good
			out = append(out, &made)
		}
		return out, ok || len(out) > 0 // what is right is checked further, so that everything is told at once
	},
}

var job = object("job", []key[Job]{
	field("name", "title, for people", texts, func(j *Job) *Text { return &j.Name }),
	field("needs", "jobs that have to end first", some(need, forge.MaxNeeds), func(j *Job) *[]Need { return &j.Needs }),
	field("if", "whether it runs, as a CEL expression; by default success()", filled("a CEL expression"), func(j *Job) *Text { return &j.If }),
	field("runner", "where it runs: labels, or what the runner must have", runner, func(j *Job) **Runner { return &j.Runner }),
	field("network", "none (the default) or host", network, func(j *Job) *forge.Network { return &j.Network }),
	field("source", "what it starts from: false for nothing, or how", source, func(j *Job) *Source { return &j.Source }),
	field("env", "variables of each step", variables, func(j *Job) *[]Var { return &j.Env }),
	field("secrets", "secrets by the variable that gets them", secrets, func(j *Job) *[]Secret { return &j.Secrets }),
	field("matrix", "several legs of the job, one for each combination", matrix, func(j *Job) **Matrix { return &j.Matrix }),
	field("parallel", "as many copies, each with its PARALLEL_INDEX, from 1", whole(1, MaxLegs), func(j *Job) *int { return &j.Parallel }),
	must(field("steps", "what it does, one step after the other", stepList, func(j *Job) *[]*Step { return &j.Steps })),
	field("outputs", "texts for the jobs that need it", variables, func(j *Job) *[]Var { return &j.Outputs }),
	field("artifacts", "files that are kept", some(artifact, forge.MaxOutputs), func(j *Job) *[]Artifact { return &j.Artifacts }),
	field("cache", "folders that may come filled from an earlier job", some(cache, forge.MaxCaches), func(j *Job) *[]Cache { return &j.Caches }),
	field("timeout", "longest time of all steps", span(forge.MaxRunTimeout), timeoutOfJob),
	field("retry", "how often to try again after which failures", retry, func(j *Job) **Retry { return &j.Retry }),
	field("allow_failure", "a failure of it does not fail the run", allowFailure, func(j *Job) *forge.AllowFailure { return &j.AllowFailure }),
	field("concurrency", "keeps jobs of one group from running at the same time", concurrency, func(j *Job) **Concurrency { return &j.Concurrency }),
	later[Job]("image", "container image"), later[Job]("services", "containers beside it"),
	later[Job]("environment", "a place with approvals"), later[Job]("id_token", "identity tokens"),
	later[Job]("devices", "devices of the runner"), later[Job]("changes", "runs only when such files changed"),
})

var stepList = value[[]*Step]{&shape{kind: "array", items: step.shape, least: 1, most: forge.MaxSteps}, func(r *reader, n *yaml.Node) ([]*Step, bool) {
	all, ok := list(step, forge.MaxSteps).read(r, n)
	if ok && len(all) == 0 {
		r.wrong(CodeMissing, posOf(n), "write one, as in steps: [{ run: make }]", "there is no step")
	}
	return all, ok
}}

var step = either(
	map[yaml.Kind]value[*Step]{
		yaml.ScalarNode:  as(filled("a script"), func(t Text) *Step { return &Step{At: t.At, Run: t} }),
		yaml.MappingNode: stepKeys,
	}, []*shape{{kind: "string", text: "a script"}, stepKeys.shape})

var stepKeys = value[*Step]{stepObject.shape, func(r *reader, n *yaml.Node) (*Step, bool) {
	if key, ok := loneKey(n); ok && strings.Contains(key, " ") {
		r.wrong(CodeType, posOf(n), "put the whole line into quotes, or write it below - run: |", "a colon with a space behind it makes a key of %q", clip(key))
		return nil, false
	}
	s, ok := stepObject.read(r, n)
	s.At = posOf(n)
	return &s, ok
}}

// loneKey is the key of a mapping that has only one.
func loneKey(n *yaml.Node) (string, bool) {
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return "", false
	}
	return n.Content[0].Value, true
}

var stepObject = object("step", []key[Step]{
	field("id", "by which outputs of the job find it", named1, func(s *Step) *Text { return &s.ID }),
	field("name", "title, for people", texts, func(s *Step) *Text { return &s.Name }),
	must(field("run", "the script", filled("a script"), func(s *Step) *Text { return &s.Run })),
	field("shell", "what runs the script: bash, sh, python, or a program and its arguments", shell, func(s *Step) *[]string { return &s.Shell }),
	field("dir", "folder below the source", filled("a path below the source"), func(s *Step) *Text { return &s.Dir }),
	field("env", "variables of this step", variables, func(s *Step) *[]Var { return &s.Env }),
	field("if", "whether it runs, as a CEL expression; by default success()", filled("a CEL expression"), func(s *Step) *Text { return &s.If }),
	field("timeout", "longest time of this step", span(forge.MaxRunTimeout), timeoutOfStep),
	field("allow_failure", "a failure of it does not fail the job", allowFailure, func(s *Step) *forge.AllowFailure { return &s.AllowFailure }),
})

var need = func() value[Need] {
	keys := object("need", []key[Need]{
		must(field("job", "key of the job", named1, func(n *Need) *Text { return &n.Job })),
		field("optional", "it may have been skipped", flags, func(n *Need) *bool { return &n.Optional }),
	})
	return either(map[yaml.Kind]value[Need]{
		yaml.ScalarNode: as(named1, func(t Text) Need { return Need{Job: t} }), yaml.MappingNode: keys,
	}, []*shape{{kind: "string", text: "key of a job", pattern: namePattern}, keys.shape})
}()

// named1 is a name that other places refer to.
var named1 = value[Text]{&shape{kind: "string", text: "a name", pattern: namePattern}, func(r *reader, n *yaml.Node) (Text, bool) {
	t, ok := r.text(n)
	if ok {
		if why := nameHint(t.Value); why != "" {
			r.wrong(CodeValue, t.At, why, "%q is no name", clip(t.Value))
			return t, false
		}
	}
	return t, ok
}}

// variables are environment variables, or outputs: names with texts.
var variables = value[[]Var]{
	&shape{kind: "object", values: texts.shape, most: forge.MaxEnv},
	func(r *reader, n *yaml.Node) ([]Var, bool) {
		all, ok := mapping(texts, func(string) string { return "" }, forge.MaxEnv).read(r, n)
		vars := make([]Var, 0, len(all))
		for _, v := range all {
			vars = append(vars, Var{v.name, v.at, v.value})
		}
		return vars, ok
	},
}

var runner = func() value[*Runner] {
	keys := object("runner", []key[Runner]{
		field("os", "operating system, as in linux", filled("a name"), func(r *Runner) *Text { return &r.OS }),
		field("arch", "processor, as in amd64", filled("a name"), func(r *Runner) *Text { return &r.Arch }),
		field("pool", "pool of the runner", filled("a name"), func(r *Runner) *Text { return &r.Pool }),
		field("labels", "labels that it must have", some(filled("a label"), forge.MaxLabels), func(r *Runner) *[]Text { return &r.Labels }),
		field("toolchains", "toolchains that it must have, as ID or ID@VERSION", some(filled("a toolchain"), forge.MaxToolchainNeeds), func(r *Runner) *[]Text { return &r.Toolchains }),
		field("cpu", "cores, asked for and the limit", cores, func(r *Runner) *forge.MilliCPU { return &r.CPU }),
		field("memory", "memory, asked for and the limit", size(forge.MaxMemory), func(r *Runner) *forge.Bytes { return &r.Memory }),
		field("disk", "disk, asked for and the limit", size(forge.MaxDisk), func(r *Runner) *forge.Bytes { return &r.Disk }),
	})
	labels := as(some(filled("a label"), forge.MaxLabels), func(l []Text) *Runner { return &Runner{Labels: l} })
	return either(map[yaml.Kind]value[*Runner]{
		yaml.ScalarNode: labels, yaml.SequenceNode: labels, yaml.MappingNode: as(keys, func(r Runner) *Runner { return &r }),
	}, []*shape{labels.shape, keys.shape})
}()

var network = value[forge.Network]{
	&shape{kind: "string", words: []string{"none", "host"}},
	func(r *reader, n *yaml.Node) (forge.Network, bool) {
		t, ok := r.text(n)
		switch {
		case !ok:
			return 0, false
		case t.Value == "none":
			return forge.NetworkNone, true
		case t.Value == "host":
			return forge.NetworkHost, true
		case t.Value == "egress":
			r.wrong(CodeLater, t.At, "use host or none", "the network %q cannot be used yet", t.Value)
		default:
			r.wrong(CodeValue, t.At, meant(t.Value, []string{"none", "host"}), "%q cannot stand here", clip(t.Value))
		}
		return 0, false
	},
}

var source = func() value[Source] {
	keys := object("source", []key[Source]{
		field("mode", "cow: the job may change its copy; ro: it may not", choice([]string{"cow", "ro"}, inputMode), func(s *Source) *forge.InputMode { return &s.Mode }),
		field("git", "whether a clean repository of the commit comes with it", as(flags, func(b bool) *bool { return &b }), func(s *Source) **bool { return &s.Git }),
	})
	whether := as(flags, func(b bool) Source { return Source{None: !b} })
	return either(map[yaml.Kind]value[Source]{yaml.ScalarNode: whether, yaml.MappingNode: keys}, []*shape{whether.shape, keys.shape})
}()

func inputMode(word string) forge.InputMode {
	mode, _ := forge.ParseInputMode(word) // it is one of the words
	return mode
}

var matrix = value[*Matrix]{matrixKeys.shape, func(r *reader, n *yaml.Node) (*Matrix, bool) {
	m := Matrix{FailFast: true, At: posOf(n)}
	got, ok := matrixKeys.read(r, n)
	m.Axes, m.Include, m.Exclude = got.Axes, got.Include, got.Exclude
	if got.failFast != nil {
		m.FailFast = *got.failFast
	}
	return &m, ok
}}

type matrixParts struct {
	Matrix
	failFast *bool
}

var matrixKeys = object("matrix", []key[matrixParts]{
	field("axes", "values by the name of their axis", axes, func(m *matrixParts) *[]Axis { return &m.Axes }),
	field("include", "combinations besides, each with a value for every axis", list(combination, MaxLegs), func(m *matrixParts) *[]Combination { return &m.Include }),
	field("exclude", "combinations that are taken away; an axis that is not named may have any value", list(combination, MaxLegs), func(m *matrixParts) *[]Combination { return &m.Exclude }),
	field("fail_fast", "the first leg that fails ends the others; true by default", as(flags, func(b bool) *bool { return &b }), func(m *matrixParts) **bool { return &m.failFast }),
	later[matrixParts]("from", "values from an output of another job"),
})

var axes = as(mapping(list(texts, MaxAxisItems), nameHint, forge.MaxAxes), func(all []named[[]Text]) []Axis {
	out := make([]Axis, 0, len(all))
	for _, a := range all {
		out = append(out, Axis{a.name, a.at, a.value})
	}
	return out
})

var combination = value[Combination]{variables.shape, func(r *reader, n *yaml.Node) (Combination, bool) {
	vars, ok := variables.read(r, n)
	return Combination{posOf(n), vars}, ok
}}

// shells are those that a word stands for.
var shells = map[string][]string{
	"bash":   {"bash", "-euo", "pipefail", "-c"},
	"sh":     {"sh", "-e", "-c"},
	"python": {"python3", "-c"},
}

var shell = either(map[yaml.Kind]value[[]string]{
	yaml.ScalarNode: choice(shellWords, func(w string) []string { return shells[w] }),
	yaml.SequenceNode: as(list(filled("an argument"), forge.MaxArgs-1), func(all []Text) []string {
		words := make([]string, 0, len(all))
		for _, t := range all {
			words = append(words, t.Value)
		}
		return words
	}),
}, []*shape{{kind: "string", words: shellWords}, {kind: "array", items: &shape{kind: "string"}}})

var shellWords = []string{"bash", "sh", "python"}

var secrets = as(mapping(secret, func(string) string { return "" }, forge.MaxSecrets), func(all []named[Secret]) []Secret {
	out := make([]Secret, 0, len(all))
	for _, s := range all {
		one := s.value
		one.At = s.at
		if one.File == "" {
			one.Env = s.name
		}
		out = append(out, one)
	}
	return out
})

// secret is where the value comes from: NAME: ref puts it into a variable, NAME: {ref, file} into a file.
var secret = func() value[Secret] {
	keys := object("secret", []key[Secret]{
		must(field("ref", "name of the secret", filled("the name of a secret"), func(s *Secret) *Text { return &s.Ref })),
		field("file", "name of the file in $FORGEYARD_SECRETS that gets it, instead of a variable", as(named1, func(t Text) string { return t.Value }), func(s *Secret) *string { return &s.File }),
	})
	plain := as(filled("the name of a secret"), func(t Text) Secret { return Secret{Ref: t} })
	return either(map[yaml.Kind]value[Secret]{yaml.ScalarNode: plain, yaml.MappingNode: keys}, []*shape{plain.shape, keys.shape})
}()

var artifact = value[Artifact]{artifactKeys.shape, func(r *reader, n *yaml.Node) (Artifact, bool) {
	a, ok := artifactKeys.read(r, n)
	if a.When == 0 {
		a.When = forge.WhenSuccess
	}
	return a, ok
}}

var artifactKeys = object("artifact", []key[Artifact]{
	must(field("name", "by which it is found", named1, func(a *Artifact) *Text { return &a.Name })),
	must(field("paths", "patterns below the source; one with a leading ! takes matches away", some(filled("a pattern"), forge.MaxPatterns), func(a *Artifact) *[]Text { return &a.Paths })),
	field("when", "success (the default), failure or always", choice([]string{"success", "failure", "always"}, when), func(a *Artifact) *forge.When { return &a.When }),
	field("required", "no match is a failure", flags, func(a *Artifact) *bool { return &a.Required }),
	field("max_size", "more than this is a failure", size(forge.MaxOutputBytes), func(a *Artifact) *forge.Bytes { return &a.MaxBytes }),
	field("max_files", "more than this is a failure", as(whole(1, forge.MaxOutputFiles), func(n int) uint32 { return uint32(n) }), func(a *Artifact) *uint32 { return &a.MaxFiles }),
	later[Artifact]("expire", "how long it is kept"), later[Artifact]("sign", "a key that signs it"), later[Artifact]("report", "what it reports"),
})

func when(word string) forge.When {
	w, _ := forge.ParseWhen(word) // it is one of the words
	return w
}

var cache = value[Cache]{cacheKeys.shape, func(r *reader, n *yaml.Node) (Cache, bool) {
	c, ok := cacheKeys.read(r, n)
	c.At = posOf(n)
	return c, ok
}}

var cacheKeys = object("cache", []key[Cache]{
	must(field("key", "by which it is found; one that exists is never changed", filled("a text"), func(c *Cache) *Text { return &c.Key })),
	must(field("paths", "folders, below ~ or below the source", some(filled("a path"), forge.MaxCachePaths), func(c *Cache) *[]Text { return &c.Paths })),
	field("fallback", "beginnings of other keys to start from, the best first", some(filled("the beginning of a key"), forge.MaxFallbacks), func(c *Cache) *[]Text { return &c.Fallback }),
	field("read_only", "what this job makes of it is not kept", flags, func(c *Cache) *bool { return &c.ReadOnly }),
})

// reasons are words, and exit codes under exit.
var reasons = func() value[Reasons] {
	words := []string{"timeout", "oom", "signal", "exit"}
	word := choice(words, func(w string) Reasons {
		r, _ := forge.ParseRetryWord(w) // it is one of the words
		return Reasons{On: []forge.RetryWord{r}}
	})
	exits := object("exit", []key[Reasons]{
		must(field("exit", "exit codes", codes(), func(r *Reasons) *[]uint8 { return &r.ExitCodes })),
	})
	one := either(map[yaml.Kind]value[Reasons]{yaml.ScalarNode: word, yaml.MappingNode: as(exits, func(r Reasons) Reasons {
		r.On = []forge.RetryWord{forge.RetryExit}
		return r
	})}, []*shape{word.shape, exits.shape})
	return as(some(one, len(words)), func(all []Reasons) (sum Reasons) {
		for _, r := range all {
			sum.On, sum.ExitCodes = append(sum.On, r.On...), append(sum.ExitCodes, r.ExitCodes...)
		}
		slices.Sort(sum.On)
		sum.On = slices.Compact(sum.On)
		return sum
	})
}()

// anyReason is what is tried again where no reason is named.
var anyReason = []forge.RetryWord{forge.RetryExit, forge.RetrySignal, forge.RetryTimeout, forge.RetryOOM}

var retry = func() value[*Retry] {
	small := func(n int) uint8 { return uint8(n) }
	keys := object("retry", []key[Retry]{
		field("max", "tries besides the first", as(whole(0, forge.MaxRetries), small), func(r *Retry) *uint8 { return &r.Max }),
		field("on", "reasons: timeout, oom, signal, exit, or {exit: [CODES]}; by default all", reasons, func(r *Retry) *Reasons { return &r.Reasons }),
		field("infra", "tries besides the first where the machine was at fault; 2 by default", as(whole(0, forge.MaxRetries), func(n int) *uint8 {
			u := uint8(n)
			return &u
		}), func(r *Retry) **uint8 { return &r.Infra }),
	})
	times := as(whole(0, forge.MaxRetries), func(n int) *Retry { return &Retry{Max: uint8(n)} })
	either := either(map[yaml.Kind]value[*Retry]{
		yaml.ScalarNode: times, yaml.MappingNode: as(keys, func(r Retry) *Retry { return &r }),
	}, []*shape{times.shape, keys.shape})
	return as(either, func(r *Retry) *Retry {
		if r.Max > 0 && len(r.On) == 0 {
			r.On = anyReason
		}
		return r
	})
}()

var allowFailure = func() value[forge.AllowFailure] {
	keys := object("allow_failure", []key[forge.AllowFailure]{
		must(field("exit", "exit codes that are allowed", codes(), func(a *forge.AllowFailure) *[]uint8 { return &a.ExitCodes })),
	})
	whether := as(flags, func(b bool) forge.AllowFailure { return forge.AllowFailure{Any: b} })
	return either(map[yaml.Kind]value[forge.AllowFailure]{yaml.ScalarNode: whether, yaml.MappingNode: keys}, []*shape{whether.shape, keys.shape})
}()

var concurrency = func() value[*Concurrency] {
	keys := object("concurrency", []key[Concurrency]{
		must(field("group", "name of the group", filled("a text"), func(c *Concurrency) *Text { return &c.Group })),
		field("cancel_running", "the newer ends the older; else it waits for them", flags, func(c *Concurrency) *bool { return &c.CancelRunning }),
	})
	group := as(filled("name of the group"), func(t Text) *Concurrency { return &Concurrency{Group: t} })
	return either(map[yaml.Kind]value[*Concurrency]{
		yaml.ScalarNode: group, yaml.MappingNode: as(keys, func(c Concurrency) *Concurrency { return &c }),
	}, []*shape{group.shape, keys.shape})
}()

var defaults = object("defaults", []key[Defaults]{
	field("runner", "where jobs run", runner, func(d *Defaults) **Runner { return &d.Runner }),
	field("shell", "what runs scripts", shell, func(d *Defaults) *[]string { return &d.Shell }),
	field("timeout", "longest time of a job's steps", span(forge.MaxRunTimeout), timeoutOfDefaults),
	field("retry", "how often to try again", retry, func(d *Defaults) **Retry { return &d.Retry }),
	field("network", "none or host", network, func(d *Defaults) *forge.Network { return &d.Network }),
	field("env", "variables of every job", variables, func(d *Defaults) *[]Var { return &d.Env }),
	later[Defaults]("image", "container image"),
})

func timeoutOfJob(j *Job) *time.Duration           { return &j.Timeout }
func timeoutOfStep(s *Step) *time.Duration         { return &s.Timeout }
func timeoutOfDefaults(d *Defaults) *time.Duration { return &d.Timeout }

// triggers are names of events, or events with what they are restricted to.
var triggers = func() value[Triggers] {
	names := []string{"push", "pull_request", "tag", EventManual}
	one := choice(names, func(w string) Triggers {
		if w == EventManual {
			return Triggers{Manual: true}
		}
		return Triggers{Events: []Trigger{{Event: w}}}
	})
	many := as(list(one, len(names)), func(all []Triggers) (sum Triggers) {
		for _, t := range all {
			sum.Events, sum.Manual = append(sum.Events, t.Events...), sum.Manual || t.Manual
		}
		return sum
	})
	keys := object("triggers", []key[Triggers]{
		event("push", "commits on branches"), event("pull_request", "changes that are offered"), event("tag", "tags"),
		field("schedule", "times that come again", list(schedule, forge.MaxLabels), func(t *Triggers) *[]Schedule { return &t.Schedules }),
		field("manual", "runs that are asked for; they are always possible", nothing, func(t *Triggers) *bool { return &t.Manual }),
	})
	return either(map[yaml.Kind]value[Triggers]{yaml.ScalarNode: one, yaml.SequenceNode: many, yaml.MappingNode: keys},
		[]*shape{one.shape, many.shape, keys.shape})
}()

// event is the key of one event.
func event(name, doc string) key[Triggers] {
	patterns := some(filled("a pattern"), forge.MaxPatterns)
	restricted := object("trigger", []key[Trigger]{
		field("branches", "patterns of branches; one with a leading ! takes matches away", patterns, func(t *Trigger) *[]Text { return &t.Branches }),
		field("tags", "patterns of tags", patterns, func(t *Trigger) *[]Text { return &t.Tags }),
		field("paths", "patterns of files that changed", patterns, func(t *Trigger) *[]Text { return &t.Paths }),
	})
	return key[Triggers]{described{name: name, doc: doc, shape: &shape{either: []*shape{restricted.shape, {kind: "null"}}}}, func(r *reader, n *yaml.Node, into *Triggers) {
		if empty(n) {
			into.Events = append(into.Events, Trigger{Event: name})
		} else if t, ok := restricted.read(r, n); ok {
			t.Event = name
			into.Events = append(into.Events, t)
		}
	}}
}

// nothing is a key that is there, whatever nothing stands behind it.
var nothing = value[bool]{&shape{either: []*shape{{kind: "object"}, {kind: "null"}}}, func(r *reader, n *yaml.Node) (bool, bool) {
	if !empty(n) {
		r.wrong(CodeType, posOf(n), "write {} or leave it empty", "nothing can stand here yet")
	}
	return true, true
}}

func empty(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && len(n.Content) == 0 || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

var schedule = object("schedule", []key[Schedule]{
	must(field("cron", "five fields: minute, hour, day, month, weekday", cron, func(s *Schedule) *Text { return &s.Cron })),
	field("tz", "time zone, as in Europe/Berlin; UTC by default", filled("a time zone"), func(s *Schedule) *Text { return &s.Zone }),
})

// cron is checked as far as anybody can say without running it.
var cron = value[Text]{&shape{kind: "string", text: "five fields", example: "0 3 * * *"}, func(r *reader, n *yaml.Node) (Text, bool) {
	t, ok := r.text(n)
	const fields = "0123456789*/,-?LW#ABCDEFGHIJKMNOPQRSTUVXYZabcdefghijklmnopqrstuvwxyz"
	if ok && (len(strings.Fields(t.Value)) != 5 || strings.Trim(t.Value, fields+" ") != "") {
		r.wrong(CodeValue, t.At, "write minute, hour, day, month and weekday, as in 0 3 * * *", "%q is no time that comes again", clip(t.Value))
		return t, false
	}
	return t, ok
}}

// ignored is a key that is checked and kept nowhere.
func ignored[T, V any](name, doc string, v value[V]) key[T] {
	return key[T]{described{name: name, doc: doc, shape: v.shape}, func(r *reader, n *yaml.Node, _ *T) { v.read(r, n) }}
}

// namePattern is what nameHint says, as a regular expression.
var namePattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0," + strconv.Itoa(forge.MaxName-1) + "}$"

// nameHint says what a name must look like, or nothing if it does.
func nameHint(name string) string {
	if forge.JobKey(name).Validate() == nil {
		return ""
	}
	return "a name has 1 to " + strconv.Itoa(forge.MaxName) + " letters, digits, _ - and ., the first none of - ."
}
