package render

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/engine"
	t "github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

func TestMarkdown(tt *testing.T) {
	for src, want := range map[string]string{
		"a *b* **c** `d`":               "<p>a <em>b</em> <strong>c</strong> <code>d</code></p>",
		"# T\n\nx\ny":                   "<h1>T</h1><p>x<br>y</p>",
		"- [x] a\n- b":                  "<ul><li>☑ a</li><li>b</li></ul>",
		"3. a\n4. b":                    `<ol start="3"><li>a</li><li>b</li></ol>`,
		"```go\nfunc f() {}\n```":       "<pre class=\"code\" tabindex=\"0\"><span class=\"k\">func</span> f() {}\n</pre>",
		"<script>x</script>":            "<p>&lt;script&gt;x&lt;/script&gt;</p>",
		"a <b onclick=x>c":              "<p>a &lt;b onclick=x&gt;c</p>",
		"[a](javascript:alert(1))":      `<p>a<span class="dest"> (javascript:alert(1))</span></p>`,
		"[a](http://x/\"onclick=)":      `<p><a target="_blank" rel="noopener noreferrer nofollow" href="http://x/%22onclick=" title="http://x/%22onclick=">a</a></p>`,
		"![a](https://x/y.png)":         `<p>🖼 <a target="_blank" rel="noopener noreferrer nofollow" href="https://x/y.png" title="https://x/y.png">a</a></p>`,
		"|a|b|\n|-|-|\n|1|~~2~~|":       `<div class="scroll" tabindex="0" role="group" aria-label="table"><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td><del>2</del></td></tr></table></div>`,
		"> q":                           "<blockquote><p>q</p></blockquote>",
		"a\u202eb\x1b[31mc\x00":         "<p>abc</p>",
		strings.Repeat(">", 500) + " x": "<pre>" + strings.Repeat("&gt;", 500) + " x</pre>",
	} {
		if d := cmp.Diff(want, Markdown(src)); d != "" {
			tt.Errorf("%q (-want +got):\n%s", src, d)
		}
	}
}

// Each way to grow gives the blocks of the whole, and a block that has ended stays as it is.
func TestBlocks(tt *testing.T) {
	text := "# A\n\nfirst *para*\ngoes on\n\n- a\n\n- b\n\n  c\n\nafter\n\n```go\nx := 1\n\n\ny\n```\n\nlast\n\n1. x\n\n2. y\n\nend"
	var whole Blocks
	whole.Write(text)
	want := whole.From(0)
	for n := 1; n < 7; n++ {
		var b Blocks
		page := []string{}
		for from := 0; from < len(text); from += n {
			stable := b.Stable()
			b.Write(text[from:min(from+n, len(text))])
			page = append(page[:min(stable, len(page))], b.From(stable)...)
		}
		if d := cmp.Diff(want, page); d != "" {
			tt.Errorf("in pieces of %d (-want +got):\n%s", n, d)
		}
	}
	if d := cmp.Diff(Markdown(text), strings.Join(want, "")); d != "" {
		tt.Errorf("blocks are not the whole (-whole +blocks):\n%s", d)
	}
}

// hostile is what others may write, wherever they may write.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `javascript:alert(1)`, `</pre><svg/onload=alert(1)>`,
	`<!--`, `]]>`, `&lt;script&gt;`, "\x00<b>", "[x](data:text/html,<script>alert(1)</script>)", "`</code><script>`", `{{.}}`, `</textarea><script>`,
}

var tags = regexp.MustCompile(`<(/?)([a-zA-Z!?][^\s/>]*)((?:\s+[a-z-]+(?:="[^"<>]*")?)*)\s*>`)

var allowed = strings.Fields(`article div span p pre code b h1 h2 h3 h4 h5 h6 ul ol li em strong del blockquote br hr a details summary footer
	section button kbd table tr th td img time label input select option`)

var attributes = regexp.MustCompile(`\s+([a-z-]+)(?:="([^"]*)")?`)

// check finds anything in HTML that is not one of the tags and attributes that this package makes.
func check(tt *testing.T, from, html string) {
	tt.Helper()
	rest := tags.ReplaceAllStringFunc(html, func(tag string) string {
		m := tags.FindStringSubmatch(tag)
		if !contains(allowed, m[2]) {
			tt.Errorf("%q made the tag %s", from, tag)
		}
		for _, a := range attributes.FindAllStringSubmatch(m[3], -1) {
			if strings.HasPrefix(a[1], "on") || a[1] == "style" || a[1] == "srcdoc" {
				tt.Errorf("%q made the attribute %s", from, tag)
			}
			if (a[1] == "href" || a[1] == "src") && !regexp.MustCompile(`^(https?://|mailto:|#/c/|data:image/(png|jpeg|gif|webp);base64,)`).MatchString(a[2]) {
				tt.Errorf("%q made the address %s", from, tag)
			}
		}
		return ""
	})
	if strings.ContainsAny(rest, "<>") {
		tt.Errorf("%q left %q in %s", from, rest, html)
	}
}

// arguments are those of a call that writes a file or runs a command.
func arguments(x string) string {
	b, _ := json.Marshal(map[string]string{"path": x, "cmd": x})
	return string(b)
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func TestNothingBecomesATag(tt *testing.T) {
	now := time.Now()
	for _, x := range hostile {
		detail, _ := json.Marshal(map[string]any{"/w/" + x: map[string]any{"update": map[string]string{"unified_diff": "@@ -1 +1 @@\n-" + x + "\n+" + x, "move_path": x}}})
		changes := t.Changes(detail)
		approval := &p.ApprovalRequested{Command: []string{"bash", "-lc", x}, Cwd: x, Reason: x, MCP: &p.MCPTool{Server: x, Name: x}}
		for _, it := range []*t.Item{
			{Kind: t.User, Text: x, Images: []string{x, "data:image/svg+xml;base64,AA==", "data:image/png;base64,\"><script>"}},
			{Kind: t.Message, Status: t.Done, Text: x},
			{Kind: t.Message, Status: t.Interrupted, Text: x},
			{Kind: t.Reasoning, Status: t.Done, Text: x},
			{Kind: t.Call, Status: t.Done, Command: []string{x, x}, Cwd: x, Output: x, Start: now, End: now.Add(time.Second)},
			{Kind: t.Call, Status: t.Failed, Tool: x, Arguments: x, Output: strings.Repeat(x+"\n", 100), Signal: x, ID: x},
			{Kind: t.Call, Status: t.Failed, Tool: "write", Arguments: arguments(x), Output: x},
			{Kind: t.Call, Status: t.Failed, Tool: "exec_command", Arguments: arguments(x), Output: x},
			{Kind: t.Call, Status: t.Asking, Changes: changes, Cwd: "/w", Approval: approval},
			{Kind: t.Background, Status: t.Open, Command: []string{x}, Background: 1},
			{Kind: t.Plan, Text: x, Plan: []p.PlanStep{{Step: x, Status: x}}},
			{Kind: t.Notice, Text: x},
			{Kind: t.Retry, Text: x},
			{Kind: t.End, Text: x},
		} {
			check(tt, x, Item(it, Options{Dir: x}))
			check(tt, x, Item(it, Options{Full: true}))
			if it.Approval != nil {
				check(tt, x, Question(it, x))
			}
		}
		check(tt, x, Markdown("# "+x+"\n\n> "+x+"\n\n- "+x+"\n\n```"+x+"\n"+x+"\n```\n\n["+x+"]("+x+")\n\n!["+x+"](<"+x+">)\n\n|"+x+"|\n|-|\n|"+x+"|"))
		check(tt, x, Diff("diff --git a/"+x+" b/"+x+"\n--- a\n+++ b\n@@ -1 +1 @@\n+"+x))
		check(tt, x, Unread(x))
		check(tt, x, Row(engine.Summary{ID: p.ConversationID(x), Title: x, Cwd: x, Ended: p.EndReason(x)}, "ended"))
		tr := &t.Transcript{Inputs: []p.ReturnedInput{{Input: 1, Mode: p.WhenBusy(x), Content: p.Text(x)}}, Returned: []p.ReturnedInput{{Input: 2, Content: p.Text(x)}}, Running: []p.BackgroundStarted{{ID: 1, Command: []string{x}}}}
		d := NewDock("c", tr, []*t.Item{{Kind: t.Call, Approval: approval, Arguments: x}, {Kind: t.Call, Approval: &p.ApprovalRequested{Kind: p.ApprovePatch}, Changes: changes}})
		check(tt, x, d.Approvals+d.Queue+d.Background)
		schema, _ := json.Marshal(map[string]any{"properties": map[string]any{
			x: map[string]any{"type": "string", "title": x, "description": x}, "e": map[string]any{"enum": []string{x}}, "b": map[string]string{"type": "boolean"}, "n": map[string]string{"type": "number"},
		}})
		asks := &p.ElicitationRequested{Server: x, Message: x, Schema: schema, URL: x, Number: 1}
		form := NewDock("c", tr, []*t.Item{{Kind: t.Call, Questions: []*p.ElicitationRequested{asks}}}).Approvals
		check(tt, x, form)
		if strings.Count(form, `class="field"`) != 4 || strings.Count(form, "data-action=") != 3 {
			tt.Errorf("the form is %s", form)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, x := range hostile {
		f.Add(x)
	}
	f.Fuzz(func(tt *testing.T, src string) {
		check(tt, src, Markdown(src))
		var b Blocks
		b.Write(src)
		check(tt, src, strings.Join(b.From(0), ""))
	})
}

func TestLongOutputIsFolded(tt *testing.T) {
	it := &t.Item{Kind: t.Call, Status: t.Done, Command: []string{"x"}, ID: "1.1.0", Output: strings.Repeat("line\n", 100)}
	html := Item(it, Options{})
	if n := strings.Count(html, "line\n"); n != headLines+tailLines || !strings.Contains(html, `data-item="1.1.0"`) || !strings.Contains(html, "68 more lines") {
		tt.Errorf("%d lines in %s", n, html)
	}
	if n := strings.Count(Item(it, Options{Full: true}), "line\n"); n != 100 {
		tt.Errorf("%d lines of 100", n)
	}
}

// A call that was refused, or has not begun, is shown as the command or the changes that it asks for.
func TestRefusedCallHasItsUsualForm(tt *testing.T) {
	for _, tc := range []struct {
		tool, arguments string
		want            []string
	}{
		{"exec_command", `{"cmd":"rm -rf x","yield_time_ms":1}`, []string{`<span class="sign" aria-hidden="true">$</span>`, "rm", "-rf"}},
		{"shell", `{"command":["bash","-lc","rm x"]}`, []string{`<span class="sign" aria-hidden="true">$</span>`, "rm"}},
		{"write", `{"path":"/w/a.txt","content":"long"}`, []string{">±<", ">write a.txt<"}},
		{"apply_patch", "*** Begin Patch\n*** Update File: b.go\n*** Add File: c<.go\n*** End Patch", []string{">±<", ">update b.go, add c&lt;.go<"}},
		{"other", `{"cmd":"x"}`, []string{"<b>other</b> {&#34;cmd&#34;:&#34;x&#34;}"}},
	} {
		it := &t.Item{Kind: t.Call, Status: t.Failed, Tool: tc.tool, Arguments: tc.arguments, Output: "not run: a rule of the user forbids it"}
		html := Item(it, Options{Dir: "/w"})
		for _, want := range append(tc.want, "a rule of the user forbids it") {
			if !strings.Contains(html, want) {
				tt.Errorf("%s: no %q in\n%s", tc.tool, want, html)
			}
		}
		if tc.tool != "other" && strings.Contains(html, tc.tool+"</b>") {
			tt.Errorf("%s: it is shown as JSON:\n%s", tc.tool, html)
		}
	}
}

// What a person is asked to allow is shown whole, however long it is.
func TestAQuestionIsWhole(tt *testing.T) {
	long := strings.Repeat("x", 100_000) + "END"
	detail, _ := json.Marshal(map[string]any{"/w/a": map[string]any{"add": map[string]string{"content": strings.Repeat("line\n", 2000) + long}}})
	for _, it := range []*t.Item{
		{Changes: t.Changes(detail), Approval: &p.ApprovalRequested{Kind: p.ApprovePatch, Detail: detail}},
		{Approval: &p.ApprovalRequested{Command: []string{"bash", "-lc", strings.Repeat("echo\n", 2000) + long}}},
		{Arguments: long, Approval: &p.ApprovalRequested{Kind: p.ApproveTool, MCP: &p.MCPTool{}}},
	} {
		if html := Question(it, ""); !strings.Contains(html, "xEND") || strings.Contains(html, "…") {
			tt.Errorf("%d bytes, without the end", len(html))
		}
	}
	// Nothing prints over the rest of a reason or of a server's question.
	overprinted := &t.Item{
		Approval: &p.ApprovalRequested{Command: []string{"make"}, Reason: "bad\rgood"},
	}
	if html := Question(overprinted, ""); !strings.Contains(html, "bad␍good") {
		tt.Errorf("the reason: %s", html)
	}
	h := &builder{}
	if h.asks(&p.ElicitationRequested{Server: "s", Message: "bad\rgood"}); !strings.Contains(h.String(), "bad␍good") {
		tt.Errorf("the question: %s", h.String())
	}
}
