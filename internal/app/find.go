package app

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/humanize"
	p "github.com/fermata-agent/fermata/protocol"
)

// ErrWhich says that no conversation was named.
var ErrWhich = errors.New("no conversation given: name one, or use --last")

// Conversations are an engine, and reading beside whoever has them open.
type Conversations interface {
	engine.Engine
	Read(ctx context.Context, id p.ConversationID) iter.Seq2[p.Event, error]
}

// Find finds a conversation by its id, the beginning of its id, or its title.
func Find(ctx context.Context, e Conversations, name string) (p.ConversationID, error) {
	return FindAmong(ctx, e, name, engine.ListOptions{})
}

// FindAmong finds a conversation among some of them. An id that is given in full
// is found wherever it is.
func FindAmong(ctx context.Context, e Conversations, name string, o engine.ListOptions) (p.ConversationID, error) {
	if name == "" {
		return "", usage("%w", ErrWhich)
	}
	if id, err := p.ParseConversationID(name); err == nil && exists(ctx, e, id) {
		return id, nil // without a look at all the others, of which there may be thousands
	}
	var others, found []engine.Summary
	for s, err := range All(ctx, e, o) {
		if err != nil {
			return "", err
		}
		switch {
		case string(s.ID) == name:
			return s.ID, nil
		case strings.HasPrefix(string(s.ID), name), s.Title == name:
			found = append(found, s)
		default:
			others = append(others, s)
		}
	}
	switch len(found) {
	case 1:
		return found[0].ID, nil
	case 0:
		return "", &Error{
			Err:  fmt.Errorf("%q: %w", name, engine.ErrNotFound),
			Hint: nearest(name, others),
		}
	}
	return "", &Error{
		Err:  fmt.Errorf("%q matches %d conversations", name, len(found)),
		Hint: fmt.Sprintf("give more of the id: %s or %s", found[0].ID, found[1].ID),
	}
}

// exists reports whether there is such a conversation. If it cannot be read, what is done with it says why.
func exists(ctx context.Context, e Conversations, id p.ConversationID) bool {
	first, stop := iter.Pull2(e.Read(ctx, id))
	defer stop()
	_, err, ok := first()
	return ok && !errors.Is(err, engine.ErrNotFound)
}

// nearest names the conversations whose id or title is most like name.
func nearest(name string, others []engine.Summary) string {
	if len(others) == 0 {
		return "there are no conversations yet"
	}
	like := func(s engine.Summary) int {
		return min(humanize.Distance(name, beginning(string(s.ID), name)), humanize.Distance(name, beginning(s.Title, name)))
	}
	others = slices.DeleteFunc(slices.Clone(others), func(s engine.Summary) bool { return like(s) > min(3, len(name)/3) })
	if len(others) == 0 {
		return "see fermata list"
	}
	slices.SortStableFunc(others, func(a, b engine.Summary) int { return like(a) - like(b) })
	var lines []string
	for _, s := range others[:min(3, len(others))] {
		lines = append(lines, fmt.Sprintf("%s  %s", s.ID, s.Title))
	}
	return "did you mean:\n  " + strings.Join(lines, "\n  ")
}

// beginning is as much of s as name is long, if there is that much.
func beginning(s, name string) string {
	r := []rune(s)
	return string(r[:min(len(r), len([]rune(name)))])
}

// All gives every conversation, page after page.
func All(ctx context.Context, e engine.Engine, o engine.ListOptions) iter.Seq2[engine.Summary, error] {
	return AllBut(ctx, e, o, func(string) {})
}

// AllBut is All that reports, once and in one line each, what could not be read and may be missing.
func AllBut(ctx context.Context, e engine.Engine, o engine.ListOptions, report func(unread string)) iter.Seq2[engine.Summary, error] {
	if o.Limit <= 0 {
		o.Limit = 1000 // for each page all files are looked at
	}
	return func(yield func(engine.Summary, error) bool) {
		reported := map[string]bool{}
		for {
			page, err := e.List(ctx, o)
			if err != nil {
				yield(engine.Summary{}, err)
				return
			}
			for _, line := range page.Unread {
				if !reported[line] {
					report(line)
				}
				reported[line] = true
			}
			for _, s := range page.Items {
				if !yield(s, nil) {
					return
				}
			}
			if o.Cursor = page.Next; o.Cursor == "" {
				return
			}
		}
	}
}
