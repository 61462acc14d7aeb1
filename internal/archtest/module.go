package archtest

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Module is the parsed source of one Go module: what "./..." would match,
// with the files of every operating system.
type Module struct {
	Dir      string // absolute
	Path     string // the module path, as "github.com/forgeyard/forgeyard"
	Packages []*Package
	fset     *token.FileSet
}

// A Package is one folder with Go files in it.
type Package struct {
	Path  string // relative to the module's root; "." for the root itself
	Files []*File
}

// A File is one parsed Go file.
type File struct {
	Path    string // slash-separated, relative to the module's root
	Test    bool
	Lines   int
	Syntax  *ast.File
	Imports []Import
}

// An Import is one import declaration.
type Import struct {
	Path string
	Line int
}

// Load parses every Go file of the module whose root is dir. Like the go
// command it leaves out testdata, vendor, folders that begin with "." or "_"
// and nested modules.
func Load(dir string) (*Module, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("load module: %w", err)
	}
	m := &Module{Dir: abs, fset: token.NewFileSet()}
	if m.Path, err = modulePath(filepath.Join(abs, "go.mod")); err != nil {
		return nil, err
	}
	if err := filepath.WalkDir(abs, m.visit); err != nil {
		return nil, fmt.Errorf("load module %s: %w", m.Path, err)
	}
	if len(m.Packages) == 0 {
		return nil, fmt.Errorf("load module %s: no Go files under %s", m.Path, abs)
	}
	slices.SortFunc(m.Packages, func(a, b *Package) int { return strings.Compare(a.Path, b.Path) })
	return m, nil
}

// modulePath reads the module path from a go.mod file.
func modulePath(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read module path: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.TrimSpace(rest), nil
		}
	}
	return "", fmt.Errorf("read module path: %s has no module line", file)
}

// visit is the fs.WalkDirFunc that collects the packages.
func (m *Module) visit(name string, entry fs.DirEntry, err error) error {
	if err != nil {
		// Somebody's editor or test may remove a file while we walk.
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if entry.IsDir() {
		return m.enter(name, entry)
	}
	if !strings.HasSuffix(name, ".go") || strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "_") {
		return nil
	}
	rel, err := filepath.Rel(m.Dir, name)
	if err != nil {
		return err
	}
	file, err := m.parse(name, filepath.ToSlash(rel))
	if err != nil {
		return err
	}
	m.add(file)
	return nil
}

// enter says whether the walk goes into a folder.
func (m *Module) enter(name string, entry fs.DirEntry) error {
	if name == m.Dir {
		return nil
	}
	base := entry.Name()
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func (m *Module) parse(name, rel string) (*File, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	syntax, err := parser.ParseFile(m.fset, rel, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	file := &File{
		Path:   rel,
		Test:   strings.HasSuffix(rel, "_test.go"),
		Lines:  bytes.Count(data, []byte("\n")),
		Syntax: syntax,
	}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("parse %s: import %s: %w", rel, spec.Path.Value, err)
		}
		file.Imports = append(file.Imports, Import{Path: imported, Line: m.line(spec.Pos())})
	}
	return file, nil
}

// add files the file under its folder. WalkDir visits a folder's files in one
// run unless sub-folders sort between them, so the search goes from the back.
func (m *Module) add(file *File) {
	dir := path.Dir(file.Path)
	for _, p := range slices.Backward(m.Packages) {
		if p.Path == dir {
			p.Files = append(p.Files, file)
			return
		}
	}
	m.Packages = append(m.Packages, &Package{Path: dir, Files: []*File{file}})
}

func (m *Module) line(pos token.Pos) int { return m.fset.Position(pos).Line }

// ours returns the import path relative to the module, if it belongs to it.
func (m *Module) ours(imported string) (string, bool) {
	if imported == m.Path {
		return ".", true
	}
	return strings.CutPrefix(imported, m.Path+"/")
}
