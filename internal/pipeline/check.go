package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// What may be used where.
func onlyGit(name string) bool   { return strings.HasPrefix(name, "git.") }
func onlyLeg(name string) bool   { return onlyGit(name) || strings.HasPrefix(name, "matrix.") }
func plain(name string) bool     { return onlyLeg(name) || strings.HasPrefix(name, "needs.") }
func condition(name string) bool { return name != nameHashes && !strings.HasPrefix(name, "steps.") }
func result(name string) bool    { return plain(name) || strings.HasPrefix(name, "steps.") }
func cacheKey(name string) bool  { return plain(name) || name == nameHashes }

// check holds the parts of a file against each other, compiles its expressions and makes the legs of its jobs.
func check(r *reader, f *File) {
	file := &scope{}
	checkEnv(r, file, f.Env, onlyGit)
	checkEnv(r, file, f.Defaults.Env, onlyGit)
	checkRunner(r, file, f.Defaults.Runner, onlyGit)
	checkTitle(r, file, &f.Name, onlyGit)
	if f.Concurrency != nil {
		r.template(file, &f.Concurrency.Group, onlyGit)
	}
	if len(f.Jobs) == 0 && len(r.found) == 0 {
		r.wrong(CodeMissing, Pos{}, "", "there is no job in the file")
	}
	byKey := map[forge.JobKey]*Job{}
	for _, j := range f.Jobs {
		byKey[j.Key] = j
	}
	legs := 0
	for _, j := range f.Jobs {
		checkNeeds(r, f, j, byKey)
		j.legs = legsOf(r, j)
		legs += max(len(j.legs), 1)
	}
	if legs > forge.MaxJobsPerRun {
		r.wrong(CodeLimit, Pos{}, "", "the pipeline has %d jobs, all legs counted, more than %d", legs, forge.MaxJobsPerRun)
	}
	checkCircles(r, f, byKey)
	for _, j := range f.Jobs {
		checkJob(r, f, j, byKey)
	}
	f.hashes = hashesOf(f)
	if r.good() {
		for _, j := range f.Jobs {
			try(r, f, j)
		}
	}
}

// checkNeeds checks that what a job needs is there, once each.
func checkNeeds(r *reader, f *File, j *Job, byKey map[forge.JobKey]*Job) {
	var keys []string
	for _, other := range f.Jobs {
		if other != j {
			keys = append(keys, string(other.Key))
		}
	}
	seen := map[string]bool{}
	j.Needs = slices.DeleteFunc(j.Needs, func(n Need) bool {
		switch key := n.Job.Value; {
		case key == string(j.Key):
			r.wrong(CodeCircle, n.Job.At, "", "the job needs itself")
		case byKey[forge.JobKey(key)] == nil:
			r.wrong(CodeReference, n.Job.At, meant(key, keys), "there is no job %q", clip(key))
		case seen[key]:
			r.wrong(CodeDuplicate, n.Job.At, "keep one of them", "%q is needed twice", key)
		default:
			seen[key] = true
			return false
		}
		return true
	})
}

// checkCircles reports jobs that wait for each other, one circle after the other.
func checkCircles(r *reader, f *File, byKey map[forge.JobKey]*Job) {
	const (
		open = 1
		done = 2
	)
	state := map[forge.JobKey]int{}
	var path []string
	var visit func(j *Job)
	visit = func(j *Job) { // as deep as there are jobs, of which there are at most MaxJobs
		state[j.Key], path = open, append(path, string(j.Key))
		for _, n := range j.Needs {
			switch key := forge.JobKey(n.Job.Value); state[key] {
			case open:
				from := slices.Index(path, n.Job.Value)
				r.wrong(CodeCircle, n.Job.At, "take one of the needs away", "these jobs wait for each other: %s",
					strings.Join(append(slices.Clone(path[from:]), n.Job.Value), " → "))
			case 0:
				visit(byKey[key])
			}
		}
		state[j.Key], path = done, path[:len(path)-1]
	}
	for _, j := range f.Jobs {
		if state[j.Key] == 0 {
			visit(j)
		}
	}
}

func checkJob(r *reader, f *File, j *Job, byKey map[forge.JobKey]*Job) {
	s := scopeOf(r, f, j, byKey)
	checkTitle(r, s, &j.Name, onlyLeg)
	if j.If.Value != "" {
		j.condition = r.condition(s, j.If)
	}
	checkRunner(r, s, j.Runner, plain)
	checkEnv(r, s, j.Env, plain)
	checkSecrets(r, j)
	checkSteps(r, s, j)
	for i := range j.Outputs {
		o := &j.Outputs[i]
		if why := nameHint(o.Name); why != "" {
			r.wrong(CodeValue, o.At, why, "%q is no name", clip(o.Name))
		}
		r.template(s, &o.Value, result)
	}
	checkArtifacts(r, j)
	checkKept(r, j)
	checkCaches(r, s, j)
	if j.Concurrency != nil {
		r.template(s, &j.Concurrency.Group, onlyLeg)
	}
	adviseAxes(r, j)
	adviseRetry(r, j)
}

// scopeOf declares the names that a job's expressions know.
func scopeOf(r *reader, f *File, j *Job, byKey map[forge.JobKey]*Job) *scope {
	s := &scope{partial: j.partial}
	first := map[string]Pos{}
	variables := map[string]string{} // by their names, what they hold
	add := func(kind *cel.Type, at Pos, words ...string) {
		if words[0] == "matrix" || words[0] == "needs" {
			spoken, as := strings.Join(words, "."), variable(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "outputs" })...)
			if other := variables[as]; other != "" && underscored(other) != underscored(spoken) {
				r.wrong(CodeDuplicate, at, "give one of them another name", "%s and %s would both be the variable %s", other, spoken, as)
			}
			variables[as] = spoken
		}
		for i, w := range words {
			if u := underscored(w); u != w {
				s.dashed = append(s.dashed, w)
				words[i] = u
			}
		}
		text := strings.Join(words, ".")
		if _, twice := first[text]; twice && words[0] != "env" {
			r.wrong(CodeDuplicate, at, "give one of them another name", "two names are the same where a dash counts as an underscore: %s", text)
			return
		}
		first[text] = at
		s.names = append(s.names, name{text, kind})
	}
	if j.Matrix != nil {
		for _, a := range j.Matrix.Axes {
			add(cel.StringType, a.At, "matrix", a.Name)
		}
	}
	for _, n := range j.Needs {
		add(cel.StringType, n.Job.At, "needs", n.Job.Value, "result")
		needed := byKey[forge.JobKey(n.Job.Value)]
		s.partial = s.partial || needed.partial
		if len(needed.legs) > 1 {
			s.many = append(s.many, n.Job.Value)
			continue // each leg may have another value
		}
		for _, o := range needed.Outputs {
			add(cel.StringType, n.Job.At, "needs", n.Job.Value, "outputs", o.Name)
		}
	}
	for _, vars := range [][]Var{f.Env, f.Defaults.Env, j.Env} {
		for _, v := range vars {
			if envHint(v.Name) == "" {
				add(cel.StringType, v.At, "env", v.Name)
			}
		}
	}
	ids := map[string]bool{"": true}
	for _, step := range j.Steps {
		if !ids[step.ID.Value] {
			ids[step.ID.Value] = true
			add(cel.MapType(cel.StringType, cel.StringType), step.ID.At, "steps", step.ID.Value)
		}
	}
	slices.SortStableFunc(s.dashed, func(a, b string) int { return len(b) - len(a) }) // the longest first
	return s
}

// condition compiles an `if`.
func (r *reader) condition(s *scope, t Text) *expression {
	if strings.Contains(t.Value, templateBegin) {
		r.wrong(CodeExpression, t.At, "write the expression alone, as in if: git.branch == 'main'", "an if is an expression by itself and takes no %s", templateBegin)
		return nil
	}
	x := r.compile(s, t, t.place(0), condition)
	if x != nil && x.kind.TypeName() != "bool" {
		r.wrong(CodeExpression, t.At, "compare it with something, as in "+clip(strings.TrimSpace(t.Value))+" != ''", "an if must be true or false, and this is a %s", x.kind.TypeName())
		return nil
	}
	return x
}

// envHint says what the name of a variable must look like, or nothing if it does.
func envHint(name string) string {
	switch {
	case strings.HasPrefix(name, "FORGEYARD_"):
		return "names that begin with FORGEYARD_ are given by the agent"
	case (forge.EnvVar{Name: name}).Validate() != nil:
		return "a variable has letters, digits and _, the first no digit"
	}
	return ""
}

func checkEnv(r *reader, s *scope, vars []Var, allowed func(string) bool) {
	for i := range vars {
		v := &vars[i]
		if why := envHint(v.Name); why != "" {
			r.wrong(CodeValue, v.At, why, "%q cannot be the name of a variable", clip(v.Name))
			continue
		}
		checkText(r, v.Value, forge.MaxEnvValue)
		r.template(s, &v.Value, allowed)
	}
}

// checkText checks what every text that a process gets has to be.
func checkText(r *reader, t Text, most int) {
	switch {
	case len(t.Value) > most:
		r.wrong(CodeLimit, t.At, "", "this has %d bytes, more than %d", len(t.Value), most)
	case strings.IndexByte(t.Value, 0) >= 0:
		r.wrong(CodeValue, t.At, "", "there is a zero byte in this text")
	}
}

func checkTitle(r *reader, s *scope, t *Text, allowed func(string) bool) {
	if len(t.Value) > forge.MaxTitle || strings.ContainsFunc(t.Value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		r.wrong(CodeValue, t.At, "", "a title is one line of at most %d bytes", forge.MaxTitle)
	}
	r.template(s, t, allowed)
}

func checkRunner(r *reader, s *scope, on *Runner, allowed func(string) bool) {
	if on == nil {
		return
	}
	for _, t := range []*Text{&on.OS, &on.Arch, &on.Pool} {
		r.template(s, t, allowed)
	}
	for _, list := range [][]Text{on.Labels, on.Toolchains} {
		for i := range list {
			r.template(s, &list[i], allowed)
		}
	}
}

func checkSecrets(r *reader, j *Job) {
	seen := map[string]bool{}
	for _, s := range j.Secrets {
		if s.Env != "" {
			if why := envHint(s.Env); why != "" {
				r.wrong(CodeValue, s.At, why, "%q cannot be the name of a variable", clip(s.Env))
			}
		}
		if _, err := forge.ParseSecretRef(s.Ref.Value); err != nil {
			r.wrong(CodeValue, s.Ref.At, "a secret is named as in codecov/token", "%q is no name of a secret", clip(s.Ref.Value))
		}
		if place := s.Env + "/" + s.File; seen[place] {
			r.wrong(CodeDuplicate, s.At, "keep one of them", "two secrets go to the same place")
		} else {
			seen[place] = true
		}
	}
}

func checkSteps(r *reader, s *scope, j *Job) {
	ids := map[string]bool{}
	for _, step := range j.Steps {
		if id := step.ID.Value; id != "" && ids[id] {
			r.wrong(CodeDuplicate, step.ID.At, "give one of them another id", "there are two steps %q", id)
		}
		ids[step.ID.Value] = true
		checkTitle(r, s, &step.Name, onlyLeg)
		checkText(r, step.Run, forge.MaxScript)
		r.literal(step.Run, "let the value come in a variable: env: { NAME: \"${{ … }}\" }, and use \"$NAME\" in the script")
		r.literal(step.Dir, "write the folder out")
		if step.Dir.Value != "" {
			if _, ok := below(forge.SourceDir, step.Dir.Value); !ok {
				r.wrong(CodeValue, step.Dir.At, "write it relative to the source, as in web/app", "%q is no folder below the source", clip(step.Dir.Value))
			}
		}
		checkEnv(r, s, step.Env, plain)
		if step.If.Value != "" {
			step.condition = r.condition(s, step.If)
		}
	}
}

func checkArtifacts(r *reader, j *Job) {
	names := map[string]bool{}
	for _, a := range j.Artifacts {
		switch {
		case reserved(a.Name.Value):
			r.wrong(CodeValue, a.Name.At, "", "names that begin with %s are ours", reservedPrefix)
		case names[a.Name.Value]:
			r.wrong(CodeDuplicate, a.Name.At, "give one of them another name", "there are two artifacts %q", a.Name.Value)
		}
		names[a.Name.Value] = true
		for i, p := range a.Paths {
			r.literal(p, "write the pattern out")
			switch {
			case !validPattern(p.Value):
				r.wrong(CodeValue, p.At, "write it relative to the source, as in dist/**", "%q is no pattern of files below the source", clip(p.Value))
			case i == 0 && strings.HasPrefix(p.Value, "!"):
				r.wrong(CodeValue, p.At, "begin with what is kept", "the first pattern takes matches away, and there are none yet")
			}
		}
	}
}

// maxFolderName bounds the name of a leg's folder, as file systems do.
const maxFolderName = 255

// checkKept checks that the artifacts of each leg have a folder of their own in the jobs that need them.
func checkKept(r *reader, j *Job) {
	if len(j.Artifacts) == 0 || len(j.legs) < 2 {
		return
	}
	seen := map[string]forge.Leg{}
	for _, leg := range j.legs {
		at := KeptAt(Node{j, leg}, "")
		switch other, twice := seen[at]; {
		case len(at) > maxFolderName:
			r.wrong(CodeLimit, j.At, "write shorter values", "the artifacts of the leg %s would stand in a folder whose name has more than %d bytes", clip(leg.String()), maxFolderName)
			return
		case twice:
			r.wrong(CodeDuplicate, j.At, "write values that differ in letters or digits", "the artifacts of the legs %s and %s would stand in the same folder", clip(other.String()), clip(leg.String()))
			return
		}
		seen[at] = leg
	}
}

// byTimes are folders of tools that compare times.
var byTimes = map[string]bool{"target": true, "build": true, "_build": true, "obj": true, "cmake-build-debug": true, "cmake-build-release": true}

func checkCaches(r *reader, s *scope, j *Job) {
	paths := map[string]bool{}
	for i := range j.Caches {
		c := &j.Caches[i]
		r.template(s, &c.Key, cacheKey)
		for k := range c.Fallback {
			r.template(s, &c.Fallback[k], cacheKey)
		}
		for _, p := range c.Paths {
			r.literal(p, "write the path out")
			at, ok := workPath(p.Value)
			switch {
			case !ok:
				r.wrong(CodeValue, p.At, "name one folder, as in ~/.cache/go-build, or relative to the source", "%q is no folder below ~ or the source", clip(p.Value))
			case byTimes[strings.TrimPrefix(at, forge.SourceDir+"/")]:
				r.wrong(CodeAdvice, p.At, "cache what goes by contents, as below ~", "a build in %q goes by file times, mostly, which are the same for all files of a source and of a cache: it may take old products for new ones", clip(p.Value))
			case paths[at]:
				r.wrong(CodeDuplicate, p.At, "keep one of them", "two caches have the folder %q", clip(p.Value))
			}
			paths[at] = true
		}
	}
}

// adviseAxes names axes that nothing reads.
func adviseAxes(r *reader, j *Job) {
	if j.Matrix == nil {
		return
	}
	text := fmt.Sprint(j.If.Value, j.Name.Value, j.Runner, j.Concurrency, j.Env, j.Caches, j.Outputs)
	for _, s := range j.Steps {
		text += fmt.Sprint(s.Run.Value, s.If.Value, s.Name.Value, s.Env)
	}
	for _, a := range j.Matrix.Axes {
		if nameHint(a.Name) == "" && !strings.Contains(text, variable("MATRIX", a.Name)) && !strings.Contains(underscored(text), "matrix_"+underscored(a.Name)) {
			r.wrong(CodeAdvice, a.At, "use "+variable("MATRIX", a.Name)+" in a script, or matrix."+a.Name+" in an expression", "nothing here reads the axis %q", a.Name)
		}
	}
}
