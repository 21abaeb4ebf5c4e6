package web

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// axe returns the text of axe-core, which it fetches the first time.
func axe(t *testing.T) string {
	t.Helper()
	file := filepath.Join("axe", "node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(file); err != nil {
		cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		cmd.Dir = "axe"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("axe-core cannot be had here: %v\n%s", err, out)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// accessible fails the test for what axe finds in the state that the page is in.
func (p *page) accessible(source, state string) {
	p.t.Helper()
	p.do(source + "; undefined")
	p.do(`window.axed = null; axe.run(document, {resultTypes: ["violations"]}).then(r => { window.axed = r.violations.map(v => v.id + " (" + v.impact + "): " + v.nodes.map(n => n.html.slice(0, 150)).join(" | ")).join("\n"); }); undefined`)
	p.until(`window.axed !== null`)
	if found := eval[string](p, `window.axed`); found != "" {
		p.t.Errorf("%s:\n%s", state, found)
	}
}

// axe finds nothing in any state, light and dark, on a desktop and on a phone.
func TestAccessible(t *testing.T) {
	notShort(t)
	source := axe(t)
	s := newServer(t, "-a", "untrusted")
	b := newBrowser(t)
	one := b.open(s.link, desktop())
	one.begin("write hello.go: package main // says hello")
	one.sees("Allow these changes?")
	one.press(`[data-decision=approved]`)
	one.ready()
	story := "# Found\n\n```go\nfunc f() {}\n```\n\n| a | b |\n|-|-|\n| one | two |\n\n> quoted\n\n- [x] done\n\n[a link](https://example.com)\n"
	if err := os.WriteFile(filepath.Join(s.work, "notes.md"), []byte(story), 0o600); err != nil {
		t.Fatal(err)
	}
	one.say("run: cat notes.md", "#send")
	one.ready()
	one.say("run: touch x; "+strings.Repeat("echo long; ", 50), "#send")
	one.sees("Allow this command?")
	id := one.id()
	for name, act := range map[string]action{"desktop": desktop(), "phone": phone()} {
		for _, theme := range []string{"light", "dark"} {
			p := b.open(s.origin()+"/#/c/"+id, act)
			p.do(`document.documentElement.dataset.theme = "` + theme + `"`)
			p.sees("Allow this command?")
			p.until(`!document.querySelector("[data-decision=approved]").disabled`)
			p.accessible(source, name+", "+theme+", approval")
			p.click("[data-act=diff]")
			p.sees("What turn 1 changed")
			p.accessible(source, name+", "+theme+", diff")
			p.click("#dialog .answers button")
			p.do(`location.hash = "#/"`)
			p.until(`!!document.querySelector("#lists a")`)
			p.accessible(source, name+", "+theme+", list")
			p.click("[data-act=new]")
			p.until(`document.getElementById("dialog").open`)
			p.accessible(source, name+", "+theme+", new conversation")
			p.noProblems()
		}
	}
}
