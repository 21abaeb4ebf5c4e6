package web

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One in each line. X is what would be run.
//
//go:embed testdata/xss.txt
var xss string

func payloads(t *testing.T) []string {
	t.Helper()
	var list []string
	for line := range strings.Lines(xss) {
		if line = strings.TrimSpace(line); line != "" {
			line = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\0`, "\x01", "X", "window.pwned=(window.pwned||0)+1").Replace(line)
			list = append(list, line)
		}
	}
	if len(list) < 100 {
		t.Fatalf("only %d payloads", len(list))
	}
	return list
}

// Whatever a model, a command, a file or its name says, nothing of it runs: as a message of the user and of the model, as Markdown,
// as a command, its output, a file's name and contents, a diff, a title and a question.
func TestNothingHostileRuns(t *testing.T) {
	list := payloads(t)
	s := newServer(t, "-a", "untrusted")
	file := strings.Join(list, "\n\n")
	if err := os.WriteFile(filepath.Join(s.work, "all.md"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range list { // names may not have a slash
		name := strings.NewReplacer("/", "∕", "\n", " ").Replace(list[i])
		_ = os.WriteFile(filepath.Join(s.work, fmt.Sprintf("%d%s", i, cutBytes(name, 200))), nil, 0o600)
	}
	b := newBrowser(t)
	p := b.open(s.link, desktop())
	p.do(`window.alert = window.confirm = window.prompt = () => { window.pwned = 1; }`)
	p.begin(list[0] + " " + list[1]) // the title of the conversation
	p.ready()
	p.say("run: cat all.md", "#send") // safe: runs at once, printed by the command and said by the model
	p.ready()
	p.until(`document.querySelectorAll(".item.message").length >= 3`)
	p.say("run: ls", "#send")
	p.ready()
	p.say(file, "#send") // said by the user, and repeated by the model
	p.ready()
	for _, x := range []string{list[2], list[10], list[40]} {
		p.say("run: touch -- '"+strings.ReplaceAll(x, "'", "")+"'", "#send") // a question
		p.sees("Allow this command?")
		p.press("[data-decision=denied]")
		p.until(`!!document.querySelector("#approvals input")`)
		p.do(fmt.Sprintf(`document.querySelector("#approvals input").value = %q`, x))
		p.click("#approvals .primary")
		p.ready()
	}
	p.say("write x<img src=x onerror=alert(1)>.html: "+strings.ReplaceAll(file, "\n", " "), "#send") // a file's name and a diff
	p.until(`document.body.classList.contains("attention") || document.getElementById("status").textContent === "ready"`)
	if eval[bool](p, `!!document.querySelector("[data-decision=approved]")`) {
		p.press("[data-decision=approved]")
	}
	p.ready()
	p.say("run: touch queued", "#send")
	p.sees("Allow this command?")
	p.say(list[3], "[data-act=queue]") // a waiting message
	p.until(`document.querySelectorAll("#queue li").length === 1`)
	p.click("#stop")
	p.ready()
	p.click("[data-act=diff]")
	p.until(`document.getElementById("dialog").open`)
	p.do(`document.querySelectorAll("details").forEach(d => { d.open = true; })`)
	p.do(`document.querySelectorAll("[data-act=whole]").forEach(b => b.click())`)
	fresh := b.open(s.origin() + "/#/c/" + p.id())
	fresh.until(`document.querySelectorAll(".item.message").length >= 3`)
	fresh.ready()
	for _, p := range []*page{p, fresh} {
		if n := eval[int](p, `window.pwned || 0`); n != 0 {
			t.Errorf("%d payloads ran", n)
		}
		if n := eval[int](p, `document.querySelectorAll("script").length`); n != 1 {
			t.Errorf("%d scripts are on the page", n)
		}
		bad := eval[string](p, `[...document.querySelectorAll("#items *, #dock *, #list *, #dialog *")].filter(e =>
			!/^(ARTICLE|DIV|SPAN|P|PRE|CODE|B|H[1-6]|UL|OL|LI|EM|STRONG|DEL|BLOCKQUOTE|BR|HR|A|DETAILS|SUMMARY|FOOTER|SECTION|BUTTON|KBD|TABLE|TBODY|TR|TH|TD|TIME|INPUT|SELECT|OPTION|LABEL)$/.test(e.tagName) ||
			[...e.attributes].some(a => a.name.startsWith("on") || a.name === "style" || /^\s*(javascript|data|vbscript|file|blob):/i.test(a.value) && a.name !== "title")
		).map(e => e.outerHTML.slice(0, 200)).join("\n")`)
		if bad != "" {
			t.Errorf("on the page are\n%s", bad)
		}
		p.noProblems()
		p.onlyOwnRequests(s)
	}
}

func cutBytes(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}
