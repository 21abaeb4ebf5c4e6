package exec

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/exec/questions"
	p "github.com/fermata-agent/fermata/protocol"
)

// Prompt is how a person at the terminal is asked for approvals, and what MCP servers want to know.
type Prompt struct {
	In io.Reader // the terminal; read a line at a time, and only when there is a question

	// Offer returns what can be allowed for good besides an approval, in words, and what
	// remembers it. It is false if nothing can. May be nil.
	Offer func(*p.ApprovalRequested) (what string, remember func() error, ok bool)
}

// A prompter answers the approvals of a turn, and the questions of MCP servers, one after the other. Its goroutine, which ends with
// Run, is the only one that submits answers.
type prompter struct {
	asking *Prompt
	e      engine.Engine
	id     p.ConversationID
	screen *watched
	events chan p.Event
	ctx    context.Context
	offer  map[p.CallID]func() error // what an answer of p remembers
}

func newPrompter(ctx context.Context, e engine.Engine, o Options, w *watched) *prompter {
	a := &prompter{asking: o.Prompt, e: e, id: o.Conversation, screen: w, events: make(chan p.Event), ctx: ctx, offer: map[p.CallID]func() error{}}
	go a.run()
	return a
}

func (a *prompter) event(e p.Event) {
	switch e.Body.(type) {
	case *p.ApprovalRequested, *p.ApprovalResolved, *p.ElicitationRequested, *p.ElicitationResolved:
		select {
		case a.events <- e:
		case <-a.screen.quit:
		}
	}
}

func (a *prompter) run() {
	var open []questions.Question
	var lines chan string // of the terminal; nil until there is a question
	for {
		select {
		case e := <-a.events:
			q, ends := questions.Of(e)
			same := func(o questions.Question) bool { return o.Call == q.Call && o.Number == q.Number }
			first := len(open) == 0 || ends && same(open[0])
			if ends {
				open = slices.DeleteFunc(open, same)
			} else {
				open = append(open, q)
			}
			if lines == nil && !ends {
				lines = make(chan string)
				go a.read(lines)
			}
			if first && len(open) > 0 {
				a.put(open[0])
			}
		case line, more := <-lines:
			if !more { // the client has left
				line, lines = "n", nil
			}
			switch {
			case len(open) == 0:
			case open[0].Elicitation != nil:
				a.reply(open[0], line, more)
			default:
				a.answer(open[0].Approval, line)
			}
		case <-a.screen.quit:
			return
		}
	}
}

// read sends the lines of the terminal. A read cannot be stopped: it ends with the process.
func (a *prompter) read(lines chan<- string) {
	defer close(lines)
	for in := bufio.NewScanner(a.asking.In); in.Scan(); {
		select {
		case lines <- in.Text():
		case <-a.screen.quit:
			return
		}
	}
}

// put shows a question.
func (a *prompter) put(q questions.Question) {
	if q.Elicitation != nil {
		a.screen.ask(q.Text(), "your answer? ")
		return
	}
	a.ask(q.Approval)
}

// reply submits what a person typed to an MCP server, or asks again.
func (a *prompter) reply(q questions.Question, line string, there bool) {
	a.screen.clearQuestion()
	op, err := q.Answer(line, there)
	if err == nil {
		_, err = a.e.Submit(context.WithoutCancel(a.ctx), a.id, op)
	}
	if err != nil {
		a.screen.ask("  "+safetext.Strip(err.Error()), "your answer? ")
	}
}

// ask shows an approval.
func (a *prompter) ask(q *p.ApprovalRequested) {
	choices := "y yes · a yes, and the same again in this conversation"
	if q.Kind == p.ApprovePatch {
		choices = "y yes"
	}
	delete(a.offer, q.Call)
	if a.asking.Offer != nil {
		if what, remember, ok := a.asking.Offer(q); ok {
			choices += "\n  p yes, and " + what
			a.offer[q.Call] = remember
		}
	}
	a.screen.ask("  "+choices+"\n  n no · s stop the turn", "allow this? ")
}

// answer submits what a person typed, or asks again.
func (a *prompter) answer(q *p.ApprovalRequested, line string) {
	a.screen.clearQuestion()
	op := p.Approve{Call: q.Call}
	switch word := strings.ToLower(strings.TrimSpace(line)); word {
	case "y", "yes":
		op.Decision = p.Approved
	case "a", "always":
		op.Decision = p.ApprovedForSession
	case "p":
		remember := a.offer[q.Call]
		if remember == nil {
			a.screen.ask("", "type y, a, n or s: ")
			return
		}
		if err := remember(); err != nil {
			a.screen.ask("  not remembered: "+safetext.Strip(err.Error()), "allow this once? ")
			return
		}
		op.Decision = p.Approved
	case "n", "no":
		op.Decision = p.Denied
	case "s", "stop":
		op.Decision = p.Abort
	default:
		a.screen.ask("", "type y, a, n or s: ")
		return
	}
	if _, err := a.e.Submit(context.WithoutCancel(a.ctx), a.id, op); err != nil {
		a.screen.ask(fmt.Sprintf("  the answer was not taken: %s", safetext.Strip(err.Error())), "allow this? ")
	}
}
