package fermata

import (
	"go/ast"
	"regexp"
	"testing"
)

// wordBudgets are how often words that make a reader guess may occur in code that is not a test. The numbers may only be
// made smaller: name the client, the process or the user, and write what a function returns, sends or reports.
var wordBudgets = map[string]int{
	`([Ss]ome|[Nn]o)body\b`:           12,
	`\bof its own\b`:                  69,
	`\b(is|are) given\b`:              62,
	`\b(told|tells)\b`:                43,
	`^(answered|refused|asked|told)$`: 1, // as the name of a function
}

func TestPlainWords(t *testing.T) {
	count := map[string]int{}
	var texts []string
	for _, s := range sources(t) {
		if !s.test && !helper(s.pkg) && !under(s.pkg, []string{"e2e", "examples", "tools"}) {
			texts = append(texts, readable(s.file)...)
		}
	}
	for pattern := range wordBudgets {
		re := regexp.MustCompile(pattern)
		for _, text := range texts {
			count[pattern] += len(re.FindAllString(text, -1))
		}
	}
	for pattern, most := range wordBudgets {
		if count[pattern] > most {
			t.Errorf("%s occurs %d times, at most %d: see wordBudgets", pattern, count[pattern], most)
		}
		t.Logf("%s occurs %d times", pattern, count[pattern])
	}
}

// readable returns the texts of a file that are written for readers: comments, strings, and the names of functions.
func readable(f *ast.File) (texts []string) {
	for _, group := range f.Comments {
		for _, c := range group.List {
			texts = append(texts, c.Text)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			texts = append(texts, n.Value)
		case *ast.FuncDecl:
			texts = append(texts, n.Name.Name)
		}
		return true
	})
	return texts
}

// fieldComments is the share of the exported fields of exported structs that have a comment, in percent. It may only be made larger.
const fieldComments = 51

func TestFieldsHaveComments(t *testing.T) {
	fields, documented := 0, 0
	for _, s := range sources(t) {
		if s.test || helper(s.pkg) || under(s.pkg, []string{"e2e", "examples", "tools"}) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			str, ok := spec.Type.(*ast.StructType)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			for _, f := range str.Fields.List {
				for _, name := range f.Names {
					if name.IsExported() {
						fields++
						if f.Doc != nil || f.Comment != nil {
							documented++
						}
					}
				}
			}
			return true
		})
	}
	if share := 100 * documented / fields; share < fieldComments {
		t.Errorf("%d of %d exported fields have a comment: %d %%, at least %d", documented, fields, share, fieldComments)
	} else {
		t.Logf("%d of %d exported fields have a comment: %d %%", documented, fields, share)
	}
}
