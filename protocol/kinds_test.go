package protocol

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// allOps is every op; TestOpsAreListed keeps it so.
func allOps() (list []Op) {
	for _, row := range ops {
		list = append(list, row.op)
	}
	return list
}

// receivers returns the types of this package that have the named method,
// sorted, read from its source.
func receivers(t *testing.T, method string) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != method {
				continue
			}
			typ := f.Recv.List[0].Type
			if star, ok := typ.(*ast.StarExpr); ok {
				typ = star.X
			}
			names = append(names, typ.(*ast.Ident).Name)
		}
	}
	slices.Sort(names)
	return names
}

// A kind that is missing from the table would be written without a name and
// read back as unknown.
func TestKindsTableIsComplete(t *testing.T) {
	got := []string{"Unknown"} // has no name of its own
	for _, k := range kinds {
		got = append(got, reflect.TypeOf(k.make()).Elem().Name())
	}
	slices.Sort(got)
	if diff := cmp.Diff(receivers(t, "isBody"), got); diff != "" {
		t.Errorf("types with isBody (-) and the kinds table (+) differ:\n%s", diff)
	}
}

func TestOpsAreListed(t *testing.T) {
	var got []string
	for _, op := range allOps() {
		got = append(got, reflect.TypeOf(op).Name())
	}
	slices.Sort(got)
	if diff := cmp.Diff(receivers(t, "isOp"), got); diff != "" {
		t.Errorf("types with isOp (-) and the table of op_json.go (+) differ:\n%s", diff)
	}
}

var hump = regexp.MustCompile(`([a-z])([A-Z])`)

func snake(s string) string { return strings.ToLower(hump.ReplaceAllString(s, "${1}_$2")) }

func TestKindsAreNamedAfterTheirTypes(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range kinds {
		body := k.make()
		if want := snake(reflect.TypeOf(body).Elem().Name()); k.name != want || Kind(body) != want {
			t.Errorf("%T is called %q in the table and %q by Kind, want %q", body, k.name, Kind(body), want)
		}
		if seen[k.name] {
			t.Errorf("%q is in the table twice", k.name)
		}
		seen[k.name] = true
	}
}

var snakeCase = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

// Field names are part of files that outlive a version: none by accident.
func TestEveryFieldHasAJSONName(t *testing.T) {
	var check func(typ reflect.Type)
	seen := map[reflect.Type]bool{}
	check = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			check(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[typ] || typ == reflect.TypeFor[ItemID]() || typ == reflect.TypeFor[time.Time]() { // those are texts
			return
		}
		seen[typ] = true
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !snakeCase.MatchString(name) {
				t.Errorf("%s.%s is called %q in JSON", typ, f.Name, name)
			}
			check(f.Type)
		}
	}
	for _, k := range kinds {
		check(reflect.TypeOf(k.make()))
	}
	for _, op := range allOps() {
		check(reflect.TypeOf(op))
	}
}
