// Package questions is what a person at a terminal is asked during a turn: approvals, and what MCP servers
// want to know.
package questions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/follow"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/tool/mcp/form"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Question is one that is open. One of its last two fields is set.
type Question struct {
	Call        p.CallID
	Number      int // of what a server asks in a call; 0 for an approval
	Approval    *p.ApprovalRequested
	Elicitation *p.ElicitationRequested
}

// Of is the question that an event begins or ends.
func Of(e p.Event) (q Question, ends bool) {
	switch b := e.Body.(type) {
	case *p.ApprovalRequested:
		return Question{Call: b.Call, Approval: b}, false
	case *p.ElicitationRequested:
		return Question{Call: b.Call, Number: b.Number, Elicitation: b}, false
	case *p.ApprovalResolved:
		return Question{Call: b.Call}, true
	case *p.ElicitationResolved:
		return Question{Call: b.Call, Number: b.Number}, true
	}
	return Question{}, true
}

// How much of a text of others is shown, and where its lines are broken: the rest of a question must stay on
// the screen. A terminal that is narrower breaks them again.
const (
	shownLines = 20
	lineWidth  = 160
)

// Text is what an MCP server wants to know, and how to answer.
func (q Question) Text() string {
	e := q.Elicitation
	text := fmt.Sprintf("The MCP server %s asks: %s", safetext.ShowLine(e.Server), e.Message)
	lines := safetext.FoldTo(shownLines, text, lineWidth)
	fields := form.Fields(e.Schema)
	for _, f := range fields {
		lines = append(lines, safetext.ShowLine(f.String()))
	}
	switch {
	case e.URL != "":
		lines = append(lines, "at "+safetext.ShowLine(e.URL), "y done there · n no · s no answer")
	case len(fields) > 0:
		lines = append(lines, safetext.ShowLine(form.Template(fields))+" · n no · s no answer")
	default:
		lines = append(lines, "y yes · n no · s no answer")
	}
	return "  " + strings.Join(lines, "\n  ")
}

// Whole is a call that has to be judged: all of it, but for blank lines.
func Whole(call string) string {
	return strings.Join(safetext.Fold(call, lineWidth), "\n  ")
}

// Reason is why a call has to be judged. If the call is so long that its beginning may have left the screen, that
// is repeated.
func Reason(call, why string) string {
	again := ""
	if lines := safetext.Fold(call, lineWidth); len(lines) > shownLines {
		again = fmt.Sprintf("  the call above has %d lines; it begins: %s\n", len(lines), lines[0])
	}
	return again + strings.Join(safetext.FoldTo(shownLines, "? waiting for approval: "+why, lineWidth), "\n  ")
}

var errWord = errors.New("type y, n or s")

// Answer is what a person typed to an MCP server. Without a person it is no.
func (q Question) Answer(line string, there bool) (p.AnswerElicitation, error) {
	e := q.Elicitation
	op := p.AnswerElicitation{Call: q.Call, Number: q.Number, Action: p.ElicitationAccept}
	fields := form.Fields(e.Schema)
	word := strings.ToLower(strings.TrimSpace(line))
	var err error
	switch {
	case !there, word == "n", word == "no":
		op.Action = p.ElicitationDecline
	case word == "s", word == "stop":
		op.Action = p.ElicitationCancel
	case e.URL == "" && len(fields) > 0:
		op.Content, err = form.Read(fields, line)
	case word != "y" && word != "yes":
		err = errWord
	}
	return op, err
}

// Pending returns what a conversation waits for: the calls, and what they would do.
func Pending(ctx context.Context, e engine.Engine, snap engine.Snapshot) []string {
	var list []string
	for _, ev := range follow.CatchUp(ctx, e, snap.ID, snap.Turn, snap.Last) {
		if ask, ok := ev.Body.(*p.ApprovalRequested); ok && slices.Contains(snap.PendingApprovals, ask.Call) {
			list = append(list, fmt.Sprintf("%s: %s", ask.Call, Subject(ask)))
		}
	}
	return list
}

// Subject is what an approval would allow.
func Subject(ask *p.ApprovalRequested) string {
	if ask.Kind != p.ApprovePatch {
		return transcript.CommandLine(ask.Command)
	}
	paths := []string{"apply_patch"}
	for _, c := range transcript.Changes(ask.Detail) {
		paths = append(paths, c.Path)
	}
	return strings.Join(paths, " ")
}
