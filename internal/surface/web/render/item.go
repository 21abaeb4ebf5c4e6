package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	t "github.com/fermata-agent/fermata/internal/transcript"
)

// Options say how things are shown.
type Options struct {
	Dir  string // paths below it are shown relative to it
	Full bool   // nothing is shortened
}

// How much is shown of what is long.
const (
	headLines = 8
	tailLines = 24
	diffLines = 400
)

var kindClasses = map[t.Kind]lit{
	t.User: "user", t.Message: "message", t.Reasoning: "reasoning", t.Call: "call", t.Background: "call background",
	t.Plan: "plan", t.Notice: "notice", t.Retry: "notice", t.End: "end",
}

var statusClasses = map[t.Status]lit{
	t.Open: " open", t.Asking: " asking", t.Failed: " failed", t.Interrupted: " interrupted", t.Declined: " declined",
}

var labels = map[t.Kind]string{
	t.User: "You", t.Message: "Model", t.Reasoning: "Reasoning", t.Call: "Call", t.Background: "Background command",
	t.Plan: "Plan", t.Notice: "Notice", t.Retry: "Notice", t.End: "End of turn",
}

// Item makes the HTML of an item: an article. Of one that is open and grows, the text is left out:
// it goes into the elements with the classes md and out.
func Item(it *t.Item, o Options) string {
	if it.Kind == t.Call && it.Tool == "update_plan" && it.Status != t.Failed {
		return "" // the plan is all there is to show of it
	}
	h := &builder{}
	h.raw(`<article class="item `)
	h.raw(kindClasses[it.Kind])
	h.raw(statusClasses[it.Status])
	if it.Warn {
		h.raw(" warn")
	}
	h.raw(`"`)
	h.attr("aria-label", labels[it.Kind])
	h.raw(">")
	switch it.Kind {
	case t.User:
		h.el("div", "text", safetext.Clean(it.Text))
		h.images(it.Images)
	case t.Message:
		h.message(it)
	case t.Reasoning:
		h.reasoning(it)
	case t.Call, t.Background:
		h.call(it, o)
	case t.Plan:
		h.plan(it)
	case t.End:
		h.raw(`<span aria-hidden="true">■ </span>`)
		h.text(safetext.Clean(it.Text))
	default:
		h.text(safetext.Clean(it.Text))
	}
	h.end("article")
	return h.String()
}

func (h *builder) message(it *t.Item) {
	h.open("div", "md")
	if it.Status != t.Open {
		h.markdown(it.Text)
	}
	h.end("div")
	if it.Status == t.Interrupted {
		h.el("footer", "status", "■ the reply ends here: it was interrupted")
	}
}

func (h *builder) reasoning(it *t.Item) {
	h.raw(`<details><summary>`)
	h.text("Reasoning")
	h.raw(`</summary><div class="md">`)
	if it.Status != t.Open {
		h.markdown(it.Text)
	}
	h.raw(`</div></details>`)
}

func (h *builder) plan(it *t.Item) {
	h.el("div", "text", safetext.Clean(it.Text))
	h.raw(`<ul class="steps">`)
	for _, s := range it.Plan {
		switch s.Status {
		case "completed":
			h.raw(`<li class="completed"><span aria-label="completed">☑</span> `)
		case "in_progress":
			h.raw(`<li class="progress"><span aria-label="in progress">▸</span> `)
		default:
			h.raw(`<li><span aria-label="pending">☐</span> `)
		}
		h.text(safetext.Clean(s.Step))
		h.end("li")
	}
	h.raw(`</ul>`)
}

func (h *builder) call(it *t.Item, o Options) {
	switch {
	case len(it.Changes) > 0:
		h.changes(it.Changes, it.Cwd, o)
		if it.Status == t.Failed {
			h.output(it, o)
		}
	case len(it.Command) > 0:
		h.command(it, o)
	case it.Server == nil && h.approval(it, o):
	default:
		h.tool(it, o)
	}
	h.images(it.Images)
	h.status(it)
}

func (h *builder) command(it *t.Item, o Options) {
	h.open("div", "head")
	if it.Kind == t.Background {
		h.el("span", "sign", fmt.Sprintf("&%d", it.Background))
	} else {
		h.raw(`<span class="sign" aria-hidden="true">$</span>`)
	}
	h.raw(`<code class="cmd">`)
	h.shell(safetext.Show(it.CommandLine()))
	h.raw(`</code></div>`)
	if it.Cwd != "" && it.Cwd != o.Dir {
		h.el("div", "cwd", "in "+safetext.ShowLine(short(o.Dir, it.Cwd)))
	}
	h.output(it, o)
}

// approval adds a call that has not begun, or was refused before it could, in the form that it would
// have had: as a command, or as changes to files. It reports false if there is no such form.
func (h *builder) approval(it *t.Item, o Options) bool {
	want := t.RequestOf(it.Tool, it.Arguments)
	switch {
	case want.Command != "":
		h.raw(`<div class="head"><span class="sign" aria-hidden="true">$</span><code class="cmd">`)
		h.shell(safetext.Show(want.Command))
	case len(want.Files) > 0:
		var files []string
		for _, f := range want.Files {
			verb, path, _ := strings.Cut(f, " ")
			files = append(files, verb+" "+safetext.ShowLine(short(o.Dir, path)))
		}
		h.raw(`<div class="head"><span class="sign" aria-hidden="true">±</span><code class="cmd">`)
		h.text(strings.Join(files, ", "))
	default:
		return false
	}
	h.raw(`</code></div>`)
	h.output(it, o)
	return true
}

func (h *builder) tool(it *t.Item, o Options) {
	name := safetext.ShowLine(it.Tool)
	if name == "" {
		name = "call"
	}
	h.open("div", "head")
	h.raw(`<span class="sign" aria-hidden="true">→</span><code class="cmd">`)
	h.el("b", "", name)
	h.text(" " + cut(strings.Join(strings.Fields(safetext.Show(it.Arguments)), " "), 400))
	h.raw(`</code></div>`)
	if strings.TrimSpace(it.Output) == "" && it.Status != t.Open {
		return
	}
	if it.Status == t.Failed || it.Status == t.Open {
		h.output(it, o)
		return
	}
	h.raw(`<details><summary>answer</summary>`)
	h.output(it, o)
	h.raw(`</details>`)
}

// output adds what a call printed: the beginning and the end of it, and how to see the rest.
func (h *builder) output(it *t.Item, o Options) {
	if it.Status == t.Open {
		h.raw(`<pre class="out" tabindex="0" aria-label="output"></pre>`)
		return
	}
	text := strings.TrimRight(it.Output, "\r\n\t ")
	if text == "" {
		return
	}
	if it.Omitted > 0 {
		h.el("div", "cwd", "… "+size(it.Omitted)+" of output left out")
	}
	lines := strings.Split(text, "\n")
	if o.Full || len(lines) <= headLines+tailLines+4 {
		h.pre(lines)
		return
	}
	h.pre(lines[:headLines])
	h.raw(`<button type="button" class="more" data-act="whole"`)
	h.attr("data-item", it.ID)
	h.raw(">")
	h.textf("… %d more lines: show all", len(lines)-headLines-tailLines)
	h.raw("</button>")
	h.pre(lines[len(lines)-tailLines:])
}

// maxLine is how much of one line of output is shown.
const maxLine = 4 << 10

func (h *builder) pre(lines []string) {
	h.raw(`<pre class="out" tabindex="0">`)
	for _, l := range lines {
		h.text(cut(Output(l), maxLine))
		h.raw("\n")
	}
	h.end("pre")
}

// Output makes one line of output as a terminal would show it. What a progress bar
// wrote long ago and has written over since is dropped first.
func Output(line string) string {
	const enough = 16 << 10
	if len(line) > enough {
		if i := strings.LastIndexByte(line[:len(line)-enough], '\r'); i >= 0 {
			line = line[i+1:]
		}
		line = strings.ToValidUTF8(line[:min(len(line), 2*enough)], "�")
	}
	return strings.TrimRight(safetext.Line(line), " ")
}

// cut shortens a text, if it is too long, at a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xc0 == 0x80 {
		most--
	}
	return s[:most] + "…"
}

func short(dir, path string) string {
	if dir == "" {
		return path
	}
	return strings.TrimPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// status is the last line of a call: how it went.
func (h *builder) status(it *t.Item) {
	sign, parts := "✓", []string{"done"}
	switch it.Status {
	case t.Open:
		sign, parts = "…", []string{"running"}
	case t.Asking:
		sign, parts = "?", []string{"waiting for your approval"}
	case t.Interrupted:
		sign, parts = "■", []string{"interrupted"}
		if it.Killed > 0 {
			parts = append(parts, humanize.Count(it.Killed, "process")+" killed")
		}
	case t.Declined:
		sign, parts = "✗", []string{"declined"}
	case t.Failed:
		sign, parts = "✗", []string{it.Failure()}
	}
	if it.Kind == t.Call && it.Background != 0 && it.Status == t.Done {
		sign, parts = "…", []string{fmt.Sprintf("continues in the background as &%d", it.Background)}
	}
	if it.Status != t.Open && it.Status != t.Asking && it.Status != t.Declined && !it.End.IsZero() && it.End.Sub(it.Start) >= 100*time.Millisecond {
		parts = append(parts, it.Elapsed(it.End))
	}
	h.raw(`<footer class="status"`)
	if it.Status == t.Open {
		h.attr("data-since", it.Start.UTC().Format(time.RFC3339Nano))
	}
	h.raw(`><span aria-hidden="true">`)
	h.text(sign)
	h.raw(` </span>`)
	h.text(strings.Join(parts, " · "))
	h.end("footer")
}

// images adds those that came with the text. Pictures that would have to be fetched are only named.
func (h *builder) images(list []string) {
	for _, u := range list {
		if !embedded(u) {
			h.el("div", "cwd", "image: "+safetext.ShowLine(cut(u, 200)))
			continue
		}
		h.raw(`<img class="picture" alt="image of the conversation" loading="lazy" decoding="async"`)
		h.attr("src", u)
		h.raw(">")
	}
}

// maxImage is how large a picture may be to be shown, as base64.
const maxImage = 8 << 20

// embedded reports whether an address is a picture itself, in a format that cannot run anything.
func embedded(u string) bool {
	if len(u) > maxImage {
		return false
	}
	for _, f := range []string{"png", "jpeg", "gif", "webp"} {
		if strings.HasPrefix(u, "data:image/"+f+";base64,") {
			return true
		}
	}
	return false
}
