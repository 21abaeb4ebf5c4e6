// Types checks the types of the module in a directory as they are on another
// system, tests included:
//
//	go run ./types darwin ..
//
// It compiles nothing, not even the standard library for that system, which is
// most of what go vet would do there.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: types GOOS DIR")
		os.Exit(2)
	}
	dir, err := filepath.Abs(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	list, err := load(os.Args[1], dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	wrong := mistakes(list, dir)
	for _, m := range wrong {
		fmt.Fprintln(os.Stderr, m)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
	fmt.Printf("%d packages for %s, tests among them\n", len(list), os.Args[1])
}

// mistakes are those of the module itself: what others wrote is only half read.
func mistakes(list []*packages.Package, dir string) (found []string) {
	packages.Visit(list, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if e.Kind != packages.TypeError || strings.HasPrefix(e.Pos, dir+string(filepath.Separator)) {
				found = append(found, e.Error())
			}
		}
	})
	return found
}

func load(system, dir string) ([]*packages.Package, error) {
	own := dir + string(filepath.Separator)
	return packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax,
		Dir:   dir,
		Env:   append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		Tests: true,
		ParseFile: func(fset *token.FileSet, name string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, own) {
				dropBodies(file)
			}
			return file, err
		},
	}, "./...")
}

// dropBodies leaves of the functions of others what is needed to use them.
func dropBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
