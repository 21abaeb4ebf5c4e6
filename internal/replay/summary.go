package replay

import (
	"cmp"
	"context"
	"slices"
	"strings"

	p "github.com/fermata-agent/fermata/protocol"

	"github.com/fermata-agent/fermata/internal/journal"
)

// Unreadable is what a list shows of a conversation that cannot be read.
func Unreadable(in journal.Info, err error) p.Summary {
	s := summaryOf(in)
	s.Unreadable = err.Error()
	s.Title = "cannot be read: " + s.Unreadable
	return s
}

func summaryOf(in journal.Info) p.Summary {
	return p.Summary{
		ID: p.ConversationID(in.ID), Created: p.ConversationID(in.ID).Time(),
		Updated: in.Modified, Archived: in.Archived, Path: in.Path,
	}
}

// Summary reads what a list shows of one conversation.
func Summary(ctx context.Context, in journal.Info, v journal.View) (p.Summary, error) {
	s := summaryOf(in)
	head, err := v.Read(ctx, 0, 16)
	if err != nil {
		return p.Summary{}, err
	}
	for _, r := range head {
		begin(&s, Event(r))
	}
	tail, err := v.Tail(ctx, 64)
	if err != nil {
		return p.Summary{}, err
	}
	for _, r := range tail {
		finish(&s, Event(r))
	}
	if s.Returned, err = countReturned(ctx, v, tail); err != nil {
		return p.Summary{}, err
	}
	renamed, ok, err := v.Last(ctx, p.Kind(&p.Renamed{}))
	if b, is := Event(renamed).Body.(*p.Renamed); ok && is {
		s.Name = b.Title
	}
	s.Title = cmp.Or(s.Name, s.FirstLine)
	return s, err
}

// begin takes up what the first events say.
func begin(s *p.Summary, e p.Event) {
	switch b := e.Body.(type) {
	case *p.ConversationStarted:
		s.Cwd, s.Model, s.Provider = b.Settings.Cwd, b.Settings.Model, b.Settings.Provider
	case *p.UserMessage:
		if s.FirstLine == "" {
			s.FirstLine = firstLine(p.Written(b.Content))
		}
	}
}

// finish takes up what the last events say.
func finish(s *p.Summary, e p.Event) {
	s.Turns = max(s.Turns, e.Turn)
	switch b := e.Body.(type) {
	case *p.TurnStarted:
		s.Ended = ""
	case *p.TurnEnded:
		s.Ended, s.Usage = b.Reason, b.Usage
	case *p.AssistantMessage:
		s.LastLine = lastLine(b.Text)
	case *p.UserMessage:
		s.LastLine = lastLine(p.PlainText(b.Content))
	}
}

// returnedCount returns how many messages are returned after an event, if it says so.
func returnedCount(e p.Event) (n int, ok bool) {
	switch b := e.Body.(type) {
	case *p.InputReturned:
		return b.Left, true
	case *p.ReturnedResolved:
		return b.Left, true
	case *p.TurnEnded:
		return b.Returned, true
	}
	return 0, false
}

// countReturned returns how many messages are returned at the end of a conversation, whose last records are given.
// Only if a turn has run for long none of those says so.
func countReturned(ctx context.Context, v journal.View, tail []journal.Record) (int, error) {
	for _, r := range slices.Backward(tail) {
		if n, ok := returnedCount(Event(r)); ok {
			return n, nil
		}
	}
	count, last := 0, uint64(0)
	for _, kind := range []p.Body{&p.InputReturned{}, &p.ReturnedResolved{}, &p.TurnEnded{}} {
		r, ok, err := v.Last(ctx, p.Kind(kind))
		if err != nil {
			return 0, err
		}
		if n, says := returnedCount(Event(r)); ok && says && r.Seq > last {
			count, last = n, r.Seq
		}
	}
	return count, nil
}

const lineLength = 100

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return clip(line)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return clip(text[strings.LastIndexByte(text, '\n')+1:])
}

func clip(line string) string {
	if r := []rune(line); len(r) > lineLength {
		return string(r[:lineLength-1]) + "…"
	}
	return line
}
