package openapi

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"reflect"
	"strings"
)

// Comments are what the sources of packages say of their types: by "import/path.Type" and "import/path.Type.Field".
type Comments map[string]string

// Type returns what is said of a type.
func (c Comments) Type(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return c[t.PkgPath()+"."+name]
}

// Field returns what is said of a field.
func (c Comments) Field(t reflect.Type, field string) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return c[t.PkgPath()+"."+name+"."+field]
}

// Read adds what the sources of a package in a folder say, tests left out.
func (c Comments) Read(importPath, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read comments: %w", err)
	}
	for _, e := range entries {
		if !source(e) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), dir+"/"+e.Name(), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("read comments: %w", err)
		}
		c.file(importPath, file)
	}
	return nil
}

func source(e fs.DirEntry) bool {
	return !e.IsDir() && strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go")
}

func (c Comments) file(importPath string, file *ast.File) {
	for _, decl := range file.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok || general.Tok != token.TYPE {
			continue
		}
		for _, spec := range general.Specs {
			t := spec.(*ast.TypeSpec)
			about := t.Doc
			if about == nil {
				about = general.Doc
			}
			key := importPath + "." + t.Name.Name
			c[key] = sentence(about)
			if s, ok := t.Type.(*ast.StructType); ok {
				c.fields(key, s)
			}
		}
	}
}

// fields reads the comment above a field, or behind it.
func (c Comments) fields(key string, s *ast.StructType) {
	for _, f := range s.Fields.List {
		about := f.Doc
		if about == nil {
			about = f.Comment
		}
		for _, name := range f.Names {
			c[key+"."+name.Name] = sentence(about)
		}
	}
}

// sentence is a comment in one line.
func sentence(g *ast.CommentGroup) string { return strings.Join(strings.Fields(g.Text()), " ") }
