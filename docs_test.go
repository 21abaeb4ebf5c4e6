package fermata

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every hint of an error has an entry in docs/troubleshooting.md. Hints of patches are for the model.
func TestHintsAreExplained(t *testing.T) {
	text, err := os.ReadFile("docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.NewReplacer("`", "", "\n", " ").Replace(string(text))
	found := 0
	for _, s := range sources(t) {
		if s.test || helper(s.pkg) || under(s.pkg, []string{"internal/patch", "e2e", "examples", "tools"}) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			for _, part := range hintParts(n) {
				found++
				if !strings.Contains(page, part) {
					t.Errorf("%s: docs/troubleshooting.md has no entry for the hint %q", s.at(n), part)
				}
			}
			return true
		})
	}
	if found < 60 {
		t.Errorf("only %d hints were found", found)
	}
}

// verb is where a hint says something that is not the same each time.
var verb = regexp.MustCompile(`%(\[\d+\])?[a-z]`)

// hintParts are the fixed parts of a hint that a node sets, of a length that can be looked for.
func hintParts(n ast.Node) (parts []string) {
	var value ast.Expr
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Hint" {
			value = n.Value
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if field, ok := left.(*ast.SelectorExpr); ok && field.Sel.Name == "Hint" && len(n.Rhs) == len(n.Lhs) {
				value = n.Rhs[i]
			}
		}
	}
	if value == nil {
		return nil
	}
	ast.Inspect(value, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		text, _ := strconv.Unquote(lit.Value)
		for _, part := range verb.Split(text, -1) {
			if part = strings.Trim(part, " ,;:"); len(part) >= 8 {
				parts = append(parts, part)
			}
		}
		return true
	})
	return parts
}

// link is a link of Markdown to a file of the repository.
var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// Links between pages lead to files that are there.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, _ := filepath.Glob("docs/*.md")
	tops, _ := filepath.Glob("*.md")
	pages = append(pages, tops...)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), found[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if len(pages) < 15 {
		t.Errorf("only %d pages were found", len(pages))
	}
}

// Every page is on the index, and the first page stays one that is read to its end.
func TestPagesAreOnTheIndex(t *testing.T) {
	index, err := os.ReadFile("docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, _ := filepath.Glob("docs/*.md")
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(string(index), "]("+name+")") {
			t.Errorf("docs/README.md does not name %s", name)
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(readme), "\n"); n > 120 {
		t.Errorf("README.md has %d lines, at most 120", n)
	}
}
