package cli

import (
	"bytes"
	"io/fs"
	"strings"
)

// A template is a job for one way to build.
type template struct {
	what string // for people
	key  string // of the job; the first that is found keeps it
	sees func(fs.FS) bool
	job  func(fs.FS) string // its body, indented below its key
}

// maxLooked bounds the bytes of a file that is looked into.
const maxLooked = 1 << 20

// has reports whether one of the names is there, as patterns of the top folder.
func has(names ...string) func(fs.FS) bool {
	return func(root fs.FS) bool {
		for _, n := range names {
			if all, err := fs.Glob(root, n); err == nil && len(all) > 0 {
				return true
			}
		}
		return false
	}
}

// says reports whether a file has a text in it.
func says(root fs.FS, name, text string) bool {
	info, err := fs.Stat(root, name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxLooked {
		return false
	}
	content, err := fs.ReadFile(root, name)
	return err == nil && bytes.Contains(content, []byte(text))
}

// always is a job that is the same wherever it fits.
func always(body string) func(fs.FS) string { return func(fs.FS) string { return body } }

// templates are tried in this order. Those of a language come before those that may be a part of it.
var templates = []template{
	{"Go", "go", has("go.mod"), goJob},
	{"npm", "node", has("package.json"), nodeJob},
	{"Cargo", "rust", has("Cargo.toml"), always(rustJob)},
	{"Python", "python", has("pyproject.toml", "requirements.txt", "setup.py"), pythonJob},
	{"Maven", "java", has("pom.xml"), always(mavenJob)},
	{"Gradle", "gradle", has("build.gradle", "build.gradle.kts"), gradleJob},
	{"CMake", "cmake", has("CMakeLists.txt"), always(cmakeJob)},
	{"Autotools", "autotools", has("configure.ac", "configure"), autotoolsJob},
	{"Java", "javac", plainJava, always(javacJob)},
	{"make", "make", plainMake, makeJob},
}

// plainMake reports whether make is the way to build, and not a part of another one.
func plainMake(root fs.FS) bool {
	return has("Makefile", "makefile", "GNUmakefile")(root) &&
		!has("go.mod", "package.json", "Cargo.toml", "pyproject.toml", "requirements.txt", "setup.py", "pom.xml", "build.gradle*", "CMakeLists.txt", "configure*")(root)
}

// plainJava reports whether there is Java that nothing says how to build.
func plainJava(root fs.FS) bool {
	return has("*.java", "src/*.java", "src/main/java")(root) && !has("pom.xml", "build.gradle*", "Makefile")(root)
}

// network is said where a package manager loads what the source names.
const network = `    network: host # packages come from the network; jobs have none unless they ask
`

func goJob(root fs.FS) string {
	cache := "go-${{ hashFiles('go.sum') }}"
	if !has("go.sum")(root) {
		return `    cache: { key: go-build, paths: ~/.cache/go-build }
    steps:
      - go vet ./...
      - go test ./...
`
	}
	return network + `    cache: { key: "` + cache + `", paths: [~/go/pkg/mod, ~/.cache/go-build], fallback: go- }
    steps:
      - go vet ./...
      - go test ./...
`
}

func nodeJob(root fs.FS) string {
	var b strings.Builder
	b.WriteString(network)
	switch {
	case has("package-lock.json", "npm-shrinkwrap.json")(root):
		b.WriteString(`    cache: { key: "npm-${{ hashFiles('package-lock.json', 'npm-shrinkwrap.json') }}", paths: ~/.npm, fallback: npm- }
    steps:
      - npm ci
`)
	case has("pnpm-lock.yaml")(root):
		b.WriteString(`    cache: { key: "pnpm-${{ hashFiles('pnpm-lock.yaml') }}", paths: ~/.local/share/pnpm/store, fallback: pnpm- }
    steps:
      - pnpm install --frozen-lockfile
`)
	case has("yarn.lock")(root):
		b.WriteString(`    cache: { key: "yarn-${{ hashFiles('yarn.lock') }}", paths: ~/.cache/yarn, fallback: yarn- }
    steps:
      - yarn install --frozen-lockfile
`)
	default:
		b.WriteString(`    steps:
      - npm install # commit package-lock.json, and npm ci installs the same every time
`)
	}
	b.WriteString(`      - npm run build --if-present
      - npm test --if-present
`)
	return b.String()
}

const rustJob = network + `    cache: { key: "cargo-${{ hashFiles('Cargo.lock', 'Cargo.toml') }}", paths: ~/.cargo/registry, fallback: cargo- }
    steps:
      - cargo build
      - cargo test
`

func pythonJob(root fs.FS) string {
	install := ".venv/bin/pip install ."
	if has("requirements.txt")(root) {
		install = ".venv/bin/pip install -r requirements.txt"
	}
	test := ".venv/bin/python -m unittest discover"
	for _, f := range []string{"pyproject.toml", "requirements.txt", "setup.py", "setup.cfg"} {
		if says(root, f, "pytest") {
			test = ".venv/bin/pip install pytest && .venv/bin/python -m pytest"
		}
	}
	return network + `    cache: { key: "pip-${{ hashFiles('pyproject.toml', 'requirements.txt', 'setup.py') }}", paths: ~/.cache/pip, fallback: pip- }
    steps:
      - python3 -m venv .venv
      - ` + install + `
      - ` + test + `
`
}

const mavenJob = network + `    cache: { key: "maven-${{ hashFiles('pom.xml', '**/pom.xml') }}", paths: ~/.m2/repository, fallback: maven- }
    steps:
      - mvn --batch-mode verify
    artifacts:
      - { name: jar, paths: "target/*.jar" }
`

func gradleJob(root fs.FS) string {
	gradle := "gradle"
	if has("gradlew")(root) {
		gradle = "./gradlew"
	}
	return network + `    cache: { key: "gradle-${{ hashFiles('**/*.gradle', '**/*.gradle.kts') }}", paths: ~/.gradle/caches, fallback: gradle- }
    steps:
      - ` + gradle + ` --no-daemon build
`
}

const cmakeJob = `    steps:
      - cmake -S . -B build -DCMAKE_BUILD_TYPE=Release
      - cmake --build build --parallel
      - ctest --test-dir build --output-on-failure
`

func autotoolsJob(root fs.FS) string {
	first := ""
	if !has("configure")(root) {
		first = "      - autoreconf --install\n"
		if has("autogen.sh")(root) {
			first = "      - NOCONFIGURE=1 sh ./autogen.sh\n"
		}
	}
	return "    steps:\n" + first + `      - ./configure
      - make -j"$(nproc)"
      - make check
`
}

const javacJob = `    steps:
      - run: |
          find . -name '*.java' > sources.txt
          javac -d classes @sources.txt
      - jar --create --file app.jar -C classes .
    artifacts:
      - { name: jar, paths: app.jar }
`

func makeJob(root fs.FS) string {
	body := "    steps:\n      - make\n"
	for _, target := range []string{"test", "check"} {
		for _, f := range []string{"Makefile", "makefile", "GNUmakefile"} {
			if says(root, f, "\n"+target+":") {
				return body + "      - make " + target + "\n"
			}
		}
	}
	return body
}

// plainJob is the job where nothing else fits.
const plainJob = `  hello:
    # Each step is a script for bash, which ends at the first command that fails. A job starts from the
    # files of the repository, and has no network unless it says: network: host
    steps:
      - echo "this is $GIT_SHA on branch $GIT_BRANCH"
      - name: build
        run: |
          echo "write here what builds and tests it"
    # Files that are kept:
    # artifacts:
    #   - { name: result, paths: "dist/**" }
`

// firstPipeline makes a pipeline for what is in a folder, and says what it has seen.
func firstPipeline(root fs.FS) (text string, found []string) {
	var b strings.Builder
	b.WriteString(`# What runs for this repository. Check it: forgeyard lint. Run it here: forgeyard run
version: 1

jobs:
`)
	for _, t := range templates {
		if !t.sees(root) {
			continue
		}
		if len(found) > 0 {
			b.WriteString("\n")
		}
		found = append(found, t.what)
		b.WriteString("  " + t.key + ":\n" + t.job(root))
	}
	if len(found) == 0 {
		b.WriteString(plainJob)
	}
	return b.String(), found
}
