package exportcmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// writeMarkdown writes headings for turns, messages as they were written, and commands, outputs and
// changes in code blocks.
func writeMarkdown(w io.Writer, c conversation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", safetext.Line(c.title()))
	fmt.Fprintf(&b, "- conversation: %s\n- directory: %s\n- model: %s\n", c.id, safetext.Line(c.Settings.Cwd), safetext.Line(c.Settings.Model))
	if u := c.Usage; u.Total > 0 {
		fmt.Fprintf(&b, "- tokens: %d in, %d out\n", u.Input, u.Output)
	}
	turn := p.TurnID(0)
	for _, it := range c.Items {
		if hidden(it) {
			continue
		}
		if it.Turn != turn && it.Turn != 0 { // what happened between turns goes below the one before
			turn = it.Turn
			fmt.Fprintf(&b, "\n## Turn %d\n", turn)
		}
		if text := strings.TrimRight(markdownOf(it, c.Settings.Cwd), "\n"); text != "" {
			b.WriteString("\n" + text + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func markdownOf(it *transcript.Item, dir string) string {
	text := safetext.Clean(it.Text)
	switch it.Kind {
	case transcript.User:
		return quote(text) + images(it)
	case transcript.Message:
		return text + unless(it, transcript.Done, "partial")
	case transcript.Reasoning:
		return "<details><summary>Reasoning</summary>\n\n" + text + "\n\n</details>"
	case transcript.Plan:
		return steps(it.Plan)
	case transcript.Call, transcript.Background:
		return call(it, dir)
	}
	return "*" + strings.Join(strings.Fields(text), " ") + "*"
}

func call(it *transcript.Item, dir string) string {
	var b strings.Builder
	switch {
	case len(it.Changes) > 0:
		for _, c := range it.Changes {
			fmt.Fprintf(&b, "%s `%s`\n\n%s", c.Kind, safetext.ShowLine(strings.TrimPrefix(c.Path, strings.TrimSuffix(dir, "/")+"/")), fence("diff", c.Diff))
		}
		if it.Status == transcript.Failed {
			b.WriteString(fence("text", it.Output))
		}
	case len(it.Command) > 0:
		b.WriteString(fence("console", "$ "+it.CommandLine()+"\n"+it.Output))
	default:
		fmt.Fprintf(&b, "Tool `%s`\n\n%s%s", safetext.ShowLine(it.Tool), fence("json", it.Arguments), fence("text", it.Output))
	}
	switch {
	case it.Status == transcript.Failed && len(it.Command) > 0 && it.Signal != "":
		fmt.Fprintf(&b, "\n*ended by %s*", safetext.Line(it.Signal))
	case it.Status == transcript.Failed && len(it.Command) > 0:
		fmt.Fprintf(&b, "\n*exit code %d*", it.ExitCode)
	default:
		return strings.TrimRight(b.String(), "\n") + unless(it, transcript.Done, string(it.Status))
	}
	return b.String()
}

// unless is a remark on an item that did not end as items do.
func unless(it *transcript.Item, usual transcript.Status, words string) string {
	switch {
	case it.Status == usual:
		return ""
	case isOpen(it):
		words = "not finished"
	}
	return "\n\n*" + words + "*"
}

// fence puts a text into a code block that nothing in it can end.
func fence(language, text string) string {
	text = strings.TrimRight(safetext.Clean(text), "\n\t ")
	if text == "" {
		return ""
	}
	marks := "```"
	for strings.Contains(text, marks) {
		marks += "`"
	}
	return marks + language + "\n" + text + "\n" + marks + "\n"
}

func quote(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		b.WriteString(strings.TrimRight("> "+line, " \n") + "\n")
	}
	return b.String()
}

// images says how many there were: their data would fill the document.
func images(it *transcript.Item) string {
	if len(it.Images) == 0 {
		return ""
	}
	return fmt.Sprintf(">\n> *(%d attached: images)*\n", len(it.Images))
}

func steps(list []p.PlanStep) string {
	var b strings.Builder
	for _, s := range list {
		mark := " "
		if s.Status == "completed" {
			mark = "x"
		}
		fmt.Fprintf(&b, "- [%s] %s\n", mark, safetext.Line(s.Step))
	}
	return b.String()
}
