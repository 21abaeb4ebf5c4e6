package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
)

// A past is the turn before the last message.
type past struct {
	asked   string
	items   []wirecheck.Item
	aborted string // the note about an interrupted turn, without its tag
	ended   string // the note about background commands, without its tag
}

// lastTurn is the turn before the last message. It reports false if there is none.
func (v view) lastTurn() (past, bool) {
	at := lastMessage(v.before)
	if at < 0 {
		return past{}, false
	}
	p := past{asked: v.before[at].Text, items: v.before[at+1:]}
	for _, it := range p.items {
		text := strings.TrimSpace(it.Text)
		if it.Kind == wirecheck.User && strings.HasPrefix(text, "<turn_aborted>") {
			text = strings.TrimPrefix(text, "<turn_aborted>")
			p.aborted = strings.TrimSpace(strings.TrimSuffix(text, "</turn_aborted>"))
		}
		if rest, ok := strings.CutPrefix(text, "<environment_context>"); ok && it.Kind == wirecheck.User && strings.Contains(rest, "background command") {
			p.ended = "\n" + strings.TrimSpace(strings.TrimSuffix(rest, "</environment_context>"))
		}
	}
	return p, true
}

// story answers "what happened?" from the history.
func (v view) story() string {
	p, ok := v.lastTurn()
	if !ok {
		return "Nothing has happened yet: this is the first message I see."
	}
	if p.aborted != "" {
		return p.cut() + p.ended
	}
	return p.report() + p.ended
}

var duration = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`after (?:at least )?(\d+(?:\.\d+)? ?(?:ms|s|seconds|m|min)\b)`)
})

// cut tells of a turn that was cut: what, after how long, with which output.
func (p past) cut() string {
	var b strings.Builder
	fmt.Fprintf(&b, "You had asked: %s\nThe turn was interrupted", oneLine(p.asked))
	if m := duration().FindStringSubmatch(p.aborted); m != nil {
		fmt.Fprintf(&b, " after %s", m[1])
	}
	fmt.Fprintf(&b, ". The notice said: %s\n", p.aborted)

	open := 0
	for _, c := range p.pairs() {
		if !strings.HasPrefix(c.output, "aborted") {
			fmt.Fprintf(&b, "Done before that: %s\n", c.name)
			continue
		}
		open++
		fmt.Fprintf(&b, "Interrupted: %s", c.name)
		if m := duration().FindStringSubmatch(c.output); m != nil {
			fmt.Fprintf(&b, ", after %s", m[1])
		}
		fmt.Fprintf(&b, ". Its output:\n%s\n", indent(c.output))
	}
	if open == 0 {
		b.WriteString("No command was interrupted.\n")
	}
	if text := p.lastText(); text != "" {
		fmt.Fprintf(&b, "My last message was:\n%s\n", indent(text))
	}
	return strings.TrimSpace(b.String())
}

// report describes a turn that came to its end.
func (p past) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Nothing was interrupted. You had asked: %s\n", oneLine(p.asked))
	for _, c := range p.pairs() {
		fmt.Fprintf(&b, "I called: %s. Its output:\n%s\n", c.name, indent(printed(c.output)))
	}
	if text := p.lastText(); text != "" {
		fmt.Fprintf(&b, "I said:\n%s\n", indent(text))
	}
	return strings.TrimSpace(b.String())
}

// A pair is a call and its output.
type pair struct{ name, output string }

func (p past) pairs() []pair {
	var list []pair
	var ids []string
	for _, it := range p.items {
		switch it.Kind {
		case wirecheck.Call:
			list, ids = append(list, pair{name: describe(it)}), append(ids, it.ID)
		case wirecheck.Output:
			for i := len(list) - 1; i >= 0; i-- {
				if ids[i] == it.ID {
					list[i].output = it.Text
					break
				}
			}
		}
	}
	return list
}

// describe names a call: the command line of a shell, else the tool.
func describe(call wirecheck.Item) string {
	var args struct {
		Command []string `json:"command"`
		Line    string   `json:"cmd"`
	}
	if json.Unmarshal([]byte(call.Text), &args) != nil || len(args.Command) == 0 && args.Line == "" {
		return call.Name
	}
	if args.Line != "" {
		return "`" + oneLine(args.Line) + "`"
	}
	if c := args.Command; len(c) == 3 && c[0] == "bash" && c[1] == "-lc" {
		return "`" + oneLine(c[2]) + "`"
	}
	return "`" + oneLine(strings.Join(args.Command, " ")) + "`"
}

func (p past) lastText() string {
	for i := len(p.items) - 1; i >= 0; i-- {
		if p.items[i].Kind == wirecheck.Assistant {
			return tail(p.items[i].Text)
		}
	}
	return ""
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(tail(s), "\n"), "\n", "\n  ")
}

// summary is what is said when there is nothing to work with, for example when
// a conversation is to be compacted.
func (v view) summary() string {
	count := map[wirecheck.Kind]int{}
	var asked []string
	for _, it := range v.before {
		count[it.Kind]++
		if it.Kind == wirecheck.User && !fromProgram(it.Text) {
			asked = append(asked, "- "+oneLine(it.Text))
		}
	}
	if len(asked) == 0 {
		return "I am a demo, not a real model, and no tool is offered to me."
	}
	return fmt.Sprintf("In short: %s of yours, %d of mine, %s. You asked:\n%s",
		humanize.Count(len(asked), "message"), count[wirecheck.Assistant], humanize.Count(count[wirecheck.Call], "call"), strings.Join(asked, "\n"))
}
