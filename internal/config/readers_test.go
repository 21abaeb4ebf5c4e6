package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const (
	modulePath = "github.com/fermata-agent/fermata"
	ownPath    = modulePath + "/internal/config"
)

// Every key that is accepted is read by something, or gives a warning that it has no
// effect. testdata/fields.txt says where each key is stored; a reader is an expression, anywhere in the
// program, of which the type checker says that it is the value of that field.
func TestEveryKeyHasAReaderOrAWarning(t *testing.T) {
	if testing.Short() {
		t.Skip("type-checks the whole program")
	}
	fields, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	read := readFields(t)
	for line := range strings.Lines(string(fields)) {
		name, places, _ := strings.Cut(strings.TrimSpace(line), ": ")
		k := findKey(strings.Split(name, "."))
		if k == nil {
			t.Errorf("fields.txt: there is no key %s", name)
			continue
		}
		if k.alias != nil || k.warning != "" {
			continue
		}
		if !slices.ContainsFunc(strings.Fields(places), func(place string) bool { return read[fieldOf(t, place)] }) {
			t.Errorf("%s is stored in %s and read by nothing: give it a reader, or a warning with without(…)", name, places)
		}
	}
}

func findKey(path []string) *key {
	b := schema()
	for _, name := range path {
		if b = b.down(name); b == nil {
			return nil
		}
	}
	return b.key
}

// fieldOf is the field that a path in a Config ends with, as the type that has it and its name.
func fieldOf(t *testing.T, path string) string {
	t.Helper()
	at, name := reflect.TypeFor[Config](), ""
	for part := range strings.SplitSeq(path, ".") {
		for at.Kind() != reflect.Struct {
			at = at.Elem()
		}
		f, ok := at.FieldByName(part)
		if !ok {
			t.Fatalf("fields.txt: there is no field %s", path)
		}
		name, at = at.Name()+"."+part, f.Type
	}
	return name
}

// readFields are the fields of types of this package whose values are used: not only stored, nor
// pointed to, which is how keys are stored.
func readFields(t *testing.T) map[string]bool {
	t.Helper()
	list := listPackages(t)
	exports := map[string]string{}
	for _, p := range list {
		exports[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	read := map[string]bool{}
	needs := map[string]bool{ownPath: true}
	for _, p := range list { // each after those that it imports
		if !needs[p.ImportPath] && !slices.ContainsFunc(p.Imports, func(path string) bool { return needs[path] }) {
			continue
		}
		needs[p.ImportPath] = true
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
		if _, err := (&types.Config{Importer: imports}).Check(p.ImportPath, fset, files, info); err != nil {
			t.Fatal(err)
		}
		stored := storedIn(files)
		for at, s := range info.Selections {
			if s.Kind() == types.FieldVal && !stored[at] {
				addFields(read, s)
			}
		}
	}
	return read
}

// storedIn are the expressions that are assigned to, or whose address is taken.
func storedIn(files []*ast.File) map[ast.Expr]bool {
	stored := map[ast.Expr]bool{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, left := range n.Lhs {
					stored[left] = true
				}
			case *ast.UnaryExpr:
				stored[n.X] = stored[n.X] || n.Op == token.AND
			}
			return true
		})
	}
	return stored
}

// addFields adds the fields of this package that a selection goes through.
func addFields(read map[string]bool, s *types.Selection) {
	at := s.Recv()
	for _, i := range s.Index() {
		if ptr, ok := at.Underlying().(*types.Pointer); ok {
			at = ptr.Elem()
		}
		fields, ok := at.Underlying().(*types.Struct)
		if !ok {
			return
		}
		field := fields.Field(i)
		if named, ok := at.(*types.Named); ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == ownPath {
			read[named.Obj().Name()+"."+field.Name()] = true
		}
		at = field.Type()
	}
}

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles, Imports        []string
}

// listPackages has the go command compile the program, which it has done already where other tests run.
func listPackages(t *testing.T) (list []listedPackage) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Imports", "./cmd/fermata")
	cmd.Dir = "../.."
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, said.String())
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listedPackage
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}
