// Package fermata holds no code: this directory is the module's root, and its
// test keeps the rules of the house.
package fermata

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

const module = "github.com/fermata-agent/fermata/"

// layers lists the packages from the bottom to the top. A package may import
// those of lower layers only. A package below a listed one (such as internal/journal/file)
// belongs to its layer, and may import its relatives.
var layers = [][]string{
	{"internal/regular"},
	{"protocol", "internal/panics", "internal/strangers"},
	{"internal/safetext", "internal/humanize", "internal/jsonrpc", "internal/journal", "internal/proc", "internal/prompt", "internal/git", "internal/rootfs", "internal/secrets", "internal/markup", "internal/model/catalogue"},
	{
		"internal/turn", "internal/history", "internal/policy", "internal/transcript", "internal/model",
		"internal/patch", "internal/sandbox", "internal/config", "internal/fsck", "internal/foreign", "internal/observe", "internal/replay",
	},
	{"internal/tool", "internal/shim", "internal/fold"},
	{"internal/conversation"},
	{"engine"},
	{"internal/native"},
	{"provider", "store", "tool"},
	{"internal/remote"},
	{"internal/fleet"},
	{"internal/app", "internal/follow"},
	{"internal/surface/exec", "internal/surface/tui", "internal/surface/mcpserver", "internal/surface/appserver", "internal/surface/web", "internal/surface/acp"},
	{"cmd/fermata", "e2e", "examples", "tools/types", "tools/release"},
}

// The rules that have exceptions, and the exceptions.
var (
	mayLock    = []string{"internal/strangers", "internal/observe", "internal/journal", "internal/jsonrpc", "engine", "internal/proc", "internal/follow", "internal/remote", "internal/fleet", "store/nats", "internal/model/wire", "internal/secrets", "internal/tool/mcp", "internal/surface/mcpserver", "internal/surface/appserver", "internal/surface/web", "internal/surface/acp", "internal/app", "cmd/fermata"} // leaves only: nothing is called while one is held
	mayRoot    = []string{"cmd/fermata", "internal/app", "examples", "e2e", "tools"}                                                                                                                                                                                                                                                                                                                                    // context.Background
	mayStart   = []string{"cmd/fermata", "examples", "e2e", "tools"}                                                                                                                                                                                                                                                                                                                                                    // goroutines without a race test: their tests run the binary
	longTables = []string{"kinds"}                                                                                                                                                                                                                                                                                                                                                                                      // functions and files exempt by name
)

type source struct {
	path string // of the file, from the root
	pkg  string // its directory
	file *ast.File
	test bool
	set  *token.FileSet
}

// sources are all files, parsed once for all tests.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parseAll()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var parseAll = sync.OnceValues(func() ([]source, error) {
	set := token.NewFileSet()
	var all []source
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && name != ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(name))
		all = append(all, source{filepath.ToSlash(name), dir, f, strings.HasSuffix(name, "_test.go"), set})
		return nil
	})
	return all, err
})

func TestImportsGoDown(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.pkg == "." || helper(s.pkg) {
			continue
		}
		from, own := layer(s.pkg)
		if from < 0 {
			t.Errorf("%s: package %s is in no layer; give it one in house_test.go and docs/architecture.md", s.path, s.pkg)
			continue
		}
		for _, imp := range s.file.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			dep, ok := strings.CutPrefix(name, module)
			if !ok {
				continue
			}
			to, root := layer(dep)
			if helper(dep) || to >= from && root != own {
				t.Errorf("%s: %s must not import %s", s.path, s.pkg, dep)
			}
		}
	}
}

// helper reports whether a package only serves tests.
func helper(pkg string) bool { return strings.HasSuffix(pkg, "test") }

// layer returns the layer of a package, and the listed package it belongs to.
func layer(pkg string) (int, string) {
	for i, l := range layers {
		for _, root := range l {
			if pkg == root || strings.HasPrefix(pkg, root+"/") {
				return i, root
			}
		}
	}
	return -1, ""
}

// docs/architecture.md names every package, or one above it.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	named := func(pkg string) bool {
		for ; pkg != "."; pkg = path.Dir(pkg) {
			if strings.Contains(string(text), "\n| `"+pkg+"` |") {
				return true
			}
		}
		return false
	}
	for _, s := range sources(t) {
		if !s.test && s.pkg != "." && !under(s.pkg, []string{"e2e", "examples", "tools"}) && !named(s.pkg) {
			t.Errorf("%s: docs/architecture.md does not name package %s: say in its table what it holds", s.path, s.pkg)
		}
	}
}

func TestEveryPackageHasAComment(t *testing.T) {
	documented := map[string]int{}
	for _, s := range sources(t) {
		if s.test && s.pkg != "." {
			continue
		}
		documented[s.pkg] += 0
		if s.file.Doc != nil {
			documented[s.pkg]++
		}
	}
	for pkg, n := range documented {
		if n != 1 {
			t.Errorf("package %s has %d package comments, want one", pkg, n)
		}
	}
}

func TestForbiddenNames(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			switch name := x.Name + "." + sel.Sel.Name; {
			case (name == "sync.Mutex" || name == "sync.RWMutex" || name == "sync.Map") && !s.test && !helper(s.pkg) && !under(s.pkg, mayLock):
				t.Errorf("%s: %s: share by message, or lock a leaf that calls nothing while it holds the lock, and list it in mayLock", s.at(n), name)
			case (name == "context.Background" || name == "context.TODO") && !s.test && !helper(s.pkg) && !under(s.pkg, mayRoot):
				t.Errorf("%s: %s outside cmd", s.at(n), name)
			case name == "time.Sleep" && s.test && !usesSynctest(s.file):
				t.Errorf("%s: a test sleeps outside synctest", s.at(n))
			}
			return true
		})
	}
}

// TestGoroutinesAreRaced fails for a package that starts a goroutine and is not
// among those that .ci/run tests with the race detector.
func TestGoroutinesAreRaced(t *testing.T) {
	script, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(script), `step "race`)
	part, _, _ = strings.Cut(part, "step ")
	raced := strings.Fields(part)
	reported := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || helper(s.pkg) || under(s.pkg, mayStart) || reported[s.pkg] {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok && !reported[s.pkg] && !isRaced(raced, s.pkg) {
				reported[s.pkg] = true
				t.Errorf("%s: package %s starts a goroutine: add it to the race tests of .ci/run", s.at(n), s.pkg)
			}
			return true
		})
	}
}

// Tests that take long run in CI, whatever a plain go test leaves out.
func TestLongTestsRunInCI(t *testing.T) {
	script, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(script), "\nexport "+longtest.Variable+"=1") {
		t.Errorf(".ci/run does not set %s", longtest.Variable)
	}
}

func isRaced(list []string, pkg string) bool {
	return slices.ContainsFunc(list, func(arg string) bool {
		root, all := strings.CutSuffix(arg, "/...")
		return arg == "./"+pkg || all && (root == "./"+pkg || strings.HasPrefix("./"+pkg, root+"/"))
	})
}

func under(pkg string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return pkg == r || strings.HasPrefix(pkg, r+"/") })
}

func usesSynctest(f *ast.File) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` })
}

func (s source) at(n ast.Node) string { return s.set.Position(n.Pos()).String() }

// packageBudget is how many lines of code a package may have, tests aside. Those that
// have a budget of their own, and those that were larger when this rule came, are listed: their
// numbers may only be made smaller. A name that ends in /... counts what is below it.
const packageBudget = 2500

var packageBudgets = map[string]int{
	"internal/config":            3700,
	"internal/tool":              4600,
	"internal/journal/file":      3000,
	"internal/journal/nats":      3700,
	"internal/patch":             2700,
	"internal/proc":              3000,
	"internal/sandbox":           2900,
	"engine":                     2900,
	"internal/surface/exec":      1300, // guide: 600
	"internal/surface/tui":       1500, // it only lays out what the packages below it are
	"internal/surface/tui/...":   17000,
	"internal/surface/mcpserver": 2700, // guide: 900
}

func TestPackageBudgets(t *testing.T) {
	lines := map[string]int{}
	for _, s := range sources(t) {
		if s.test || s.pkg == "." || helper(s.pkg) || under(s.pkg, []string{"e2e", "examples", "tools"}) {
			continue
		}
		n := s.set.Position(s.file.FileEnd).Line
		lines[s.pkg] += n
		if under(s.pkg, []string{"internal/surface/tui"}) {
			lines["internal/surface/tui/..."] += n
		}
	}
	for pkg, n := range lines {
		budget, listed := packageBudgets[pkg]
		if !listed {
			budget = packageBudget
		}
		if n > budget {
			t.Errorf("package %s has %d lines of code, at most %d: split it", pkg, n, budget)
		}
		if listed && n < packageBudget-200 && pkg != "internal/surface/exec" && pkg != "internal/surface/mcpserver" && pkg != "internal/surface/tui" {
			t.Errorf("package %s has %d lines now: take it off the list", pkg, n)
		}
	}
	for pkg := range packageBudgets {
		if lines[pkg] == 0 {
			t.Errorf("there is no package %s", pkg)
		}
	}
}

const (
	maxFunction = 80
	maxFile     = 600
)

func TestNothingIsTooLong(t *testing.T) {
	for _, s := range sources(t) {
		if n := s.set.Position(s.file.End()).Line; n > maxFile && !slices.Contains(longTables, path.Base(s.path)) {
			t.Errorf("%s has %d lines, at most %d", s.path, n, maxFile)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1
			if n > maxFunction && !slices.Contains(longTables, f.Name.Name) {
				t.Errorf("%s: %s has %d lines, at most %d", s.at(f), f.Name.Name, n, maxFunction)
			}
		}
	}
}

// Git executes what a repository names; internal/git is how it does not.
func TestGitIsRunInOnePlace(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || helper(s.pkg) || under(s.pkg, []string{"internal/git", "internal/policy", "e2e", "tools"}) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Value == `"git"` {
				t.Errorf("%s: run git by internal/git", s.at(n))
			}
			return true
		})
	}
}

// A file with a secret is read by internal/secrets, which keeps commands from it. What reads such files by their name is
// not called elsewhere, and the name of a secrets.File is not opened; internal/journal/nats reads what internal/app/store has registered.
func TestSecretFilesAreReadInOnePlace(t *testing.T) {
	readers := []string{"LoadX509KeyPair", "UserCredentials", "NkeyOptionFromSeed", "ClientCert"}
	opens := []string{"os.ReadFile", "os.Open", "os.OpenFile", "rootfs.Open", "rootfs.OpenRegular", "rootfs.ReadFile", "regular.Open", "regular.OpenFile", "regular.ReadFile"}
	for _, s := range sources(t) {
		if s.test || helper(s.pkg) || under(s.pkg, []string{"internal/secrets", "internal/journal/nats", "e2e", "examples"}) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, _ := f.X.(*ast.Ident)
			if slices.Contains(readers, f.Sel.Name) || of != nil && slices.Contains(opens, of.Name+"."+f.Sel.Name) && isSecretName(call.Args[0]) {
				t.Errorf("%s: read files with secrets by internal/secrets", s.at(n))
			}
			return true
		})
	}
}

// isSecretName reports whether an argument may be the name of a file with a secret: that of a flag or setting, or one that is
// called so.
func isSecretName(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			found = found || n.Sel.Name == "String"
		case *ast.Ident:
			found = found || regexp.MustCompile(`(?i)token|secret|nkey|creds|password`).MatchString(n.Name)
		case *ast.BasicLit:
			found = found || regexp.MustCompile(`(?i)auth\.json|credentials|\.pem|token|secret|web\.json`).MatchString(n.Value)
		}
		return true
	})
	return found
}

// docs/security.md claims nothing without a test: each row of its tables names
// tests, and each test that it names exists.
func TestSecurityClaimsAreTested(t *testing.T) {
	known := map[string]bool{}
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test {
				known[f.Name.Name] = true
			}
		}
	}
	text, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	claims := 0
	for line := range strings.Lines(string(text)) {
		names := name.FindAllStringSubmatch(line, -1)
		for _, n := range names {
			if !known[n[1]] {
				t.Errorf("docs/security.md names %s, which does not exist", n[1])
			}
		}
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| claim |") {
			claims++
			if len(names) == 0 {
				t.Errorf("a claim without a test: %s", line)
			}
		}
	}
	if claims < 20 {
		t.Errorf("only %d claims were found", claims)
	}
}

// A shim, which every command has, runs while the program is initialised, before the packages that it does not need.
// Package net comes late in that order: with it, each shim would initialise nearly all of the program.
func TestShimsDoNotNeedNet(t *testing.T) {
	needed := []string{"internal/shim", "internal/proc", "internal/sandbox", "internal/secrets", "internal/regular", "protocol"}
	for _, s := range sources(t) {
		if s.test || !under(s.pkg, needed) {
			continue
		}
		for _, i := range s.file.Imports {
			if strings.HasPrefix(i.Path.Value, `"net`) {
				t.Errorf("%s: a shim would need %s", s.path, i.Path.Value)
			}
		}
	}
}

// Whoever has git read a work tree leaves out the files that are registered as secret, for diffs, bundles and snapshots.
func TestGitIsWithoutSecrets(t *testing.T) {
	found := 0
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || s.test || written(t, s, lit.Type) != "git.Options" {
				return true
			}
			found++
			text := written(t, s, lit)
			if s.pkg != "internal/tool" && !regexp.MustCompile(`Without: +secrets\.Home\([\w.]*[hH]ome\)\.Registered\(\)`).MatchString(text) { // it is told what to leave out
				t.Errorf("%s: %s does not leave out what is secret", s.path, text)
			}
			return true
		})
	}
	if found < 3 {
		t.Errorf("only %d were found", found)
	}
}

// written is an expression as it is written.
func written(t *testing.T, s source, n ast.Expr) string {
	t.Helper()
	var b strings.Builder
	if n == nil {
		return ""
	}
	if err := printer.Fprint(&b, s.set, n); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The numbers in docs/security.md are those of the program: whoever changes one changes both, and this table.
func TestSecurityNumbers(t *testing.T) {
	text, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	values := constants(t)
	for _, n := range []struct{ name, value, says string }{
		{"internal/secrets.keepFiles", "7 * 24 * time.Hour", "stays hidden for a week"},
		{"internal/remote.maxStrangers", "64", "have 64 connections, five seconds"},
		{"internal/remote.helloBound", "5 * time.Second", "have 64 connections, five seconds"},
		{"internal/remote.strangerLine", "4 << 20", "lines of 4 MiB"},
		{"internal/remote.strangerLines", "16 << 20", "16 MiB together"},
		{"internal/jsonrpc.roomStep", "1 << 20", "longer than 1 MiB"},
		{"internal/remote.maxClients", "256", "none of the 256 connections"},
		{"internal/surface/appserver/listen.maxHeader", "16 << 10", "16 KiB of headers"},
		{"internal/surface/appserver/listen.strangerTime", "10 * time.Second", "ten seconds for a request"},
		{"internal/surface/appserver/listen.maxStrangers", "64", "64 connections in all, of which the oldest"},
		{"internal/surface/appserver/listen.maxConnections", "1000", "none of the 1000 of clients"},
		{"internal/surface/web.strangerBody", "4 << 10", "a body of 4 KiB, ten seconds"},
		{"internal/surface/web.strangerTime", "10 * time.Second", "a body of 4 KiB, ten seconds"},
		{"internal/surface/web.headerTime", "10 * time.Second", "a body of 4 KiB, ten seconds"},
		{"internal/surface/web.maxStrangers", "64", "64 connections in all, which take none"},
		{"internal/model/sse.MaxLine", "16 << 20", "A line is at most 16 MiB"},
		{"internal/model/sse.MaxEvent", "64 << 20", "an event 64 MiB"},
		{"internal/tool/mcp/message.KeptBytes", "16 << 20", "16 MiB of it are kept"},
		{"internal/tool/mcp/message.LongestBytes", "256 << 20", "does not end after 256 MiB"},
	} {
		if values[n.name] != n.value {
			t.Errorf("%s is %q; docs/security.md says %q", n.name, values[n.name], n.says)
		}
		if !strings.Contains(string(text), n.says) {
			t.Errorf("docs/security.md does not say %q, which %s = %s stands for", n.says, n.name, n.value)
		}
	}
}

// constants are all constants outside of functions, by package and name, as they are written.
func constants(t *testing.T) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST || s.test {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i, value := range v.Values {
					values[s.pkg+"."+v.Names[i].Name] = written(t, s, value)
				}
			}
		}
	}
	return values
}
