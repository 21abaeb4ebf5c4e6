package fermata

import (
	"go/ast"
	"go/token"
	"os"
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
