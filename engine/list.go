package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// ListOptions say which conversations to list.
type ListOptions struct {
	Limit    int    // 0 is 25
	Cursor   string // Page.Next of the page before
	Cwd      string // only those begun in this directory
	Archived bool   // the archived ones instead
}

// A Page is a part of a list.
type Page struct {
	Items []Summary
	Next  string // empty on the last page
	Total int    // how many there are in all directories

	// Unread says what may be missing, and why, one line each: directories of the store that cannot be read, and, of a list of
	// one working directory, conversations that cannot be read.
	Unread []string
}

// A Summary is what a list shows of a conversation.
type Summary struct {
	ID        p.ConversationID `json:"id"`
	Title     string           `json:"title"` // Name, else FirstLine
	Name      string           `json:"name,omitempty"`
	Cwd       string           `json:"cwd"`
	Model     string           `json:"model,omitempty"`
	Created   time.Time        `json:"created"`
	Updated   time.Time        `json:"updated"`
	Turns     p.TurnID         `json:"turns"`
	Ended     p.EndReason      `json:"ended,omitempty"` // how the last turn ended; empty if it has not
	LastLine  string           `json:"last_line,omitempty"`
	FirstLine string           `json:"first_line,omitempty"` // of the first message
	Archived  bool             `json:"archived,omitempty"`
	Provider  string           `json:"provider,omitempty"` // of the model
	Usage     *p.Usage         `json:"usage,omitempty"`    // up to the end of the last turn; nil if it is not known
	Path      string           `json:"path,omitempty"`

	// Unreadable says why nothing but the id and the times is known. The title says it, too.
	Unreadable string `json:"unreadable,omitempty"`

	// Returned is how many messages were not delivered and wait to be sent, taken or dropped.
	Returned int `json:"returned,omitempty"`
}

// List returns conversations, those changed last first. It takes no lock and repairs nothing. It fails if there are none but for what cannot be read.
func (l *Local) List(ctx context.Context, o ListOptions) (Page, error) {
	infos, err := l.store.List(ctx)
	var incomplete *journal.IncompleteError
	if err != nil && !errors.As(err, &incomplete) {
		return Page{}, fmt.Errorf("list conversations: %w", err)
	}
	page, err := l.page(ctx, infos, unread(incomplete, o.Archived), o)
	if err == nil && o.Cursor == "" && len(page.Items) == 0 && len(page.Unread) > 0 {
		err = fmt.Errorf("list conversations: %s", strings.Join(page.Unread, "; "))
	}
	return page, err
}

// unread returns what is missing among those that are archived, or among those that are not.
func unread(e *journal.IncompleteError, archived bool) (lines []string) {
	if e == nil {
		return nil
	}
	for _, u := range e.Unread {
		if u.Archived == archived {
			lines = append(lines, u.String())
		}
	}
	return lines
}

// page returns a page of the conversations that a store has.
func (l *Local) page(ctx context.Context, infos []journal.Info, unread []string, o ListOptions) (Page, error) {
	infos = slices.DeleteFunc(infos, func(in journal.Info) bool { return in.Archived != o.Archived })
	slices.SortFunc(infos, newestFirst)
	after, err := parseCursor(o.Cursor)
	if err != nil {
		return Page{}, err
	}
	limit := o.Limit
	if limit <= 0 {
		limit = 25
	}
	page := Page{Total: len(infos), Unread: unread}
	for _, in := range infos {
		if o.Cursor != "" && newestFirst(in, after) <= 0 {
			continue
		}
		if ctx.Err() != nil {
			return Page{}, context.Cause(ctx)
		}
		s, err := l.summary(ctx, in)
		switch {
		case errors.Is(err, journal.ErrNotFound): // deleted meanwhile
			continue
		case err != nil && o.Cwd != "": // perhaps it is of that directory
			page.Unread = append(page.Unread, err.Error())
			continue
		case err != nil:
			s = unreadable(in, err)
		case o.Cwd != "" && s.Cwd != o.Cwd:
			continue
		}
		if len(page.Items) == limit {
			page.Next = cursorOf(page.Items[limit-1])
			break
		}
		page.Items = append(page.Items, s)
	}
	return page, nil
}

func newestFirst(a, b journal.Info) int {
	return cmp.Or(b.Modified.Compare(a.Modified), strings.Compare(b.ID, a.ID))
}

func cursorOf(s Summary) string {
	return strconv.FormatInt(s.Updated.UnixNano(), 10) + "-" + string(s.ID)
}

var errCursor = errors.New("not a cursor of this list")

func parseCursor(s string) (journal.Info, error) {
	if s == "" {
		return journal.Info{}, nil
	}
	ns, id, ok := strings.Cut(s, "-")
	n, err := strconv.ParseInt(ns, 10, 64)
	if !ok || err != nil {
		return journal.Info{}, fmt.Errorf("%q: %w", s, errCursor)
	}
	return journal.Info{ID: id, Modified: time.Unix(0, n)}, nil
}

// unreadable is what a list shows of a conversation that cannot be read.
func unreadable(in journal.Info, err error) Summary {
	s := summaryOf(in)
	s.Unreadable = err.Error()
	s.Title = "cannot be read: " + s.Unreadable
	return s
}

func summaryOf(in journal.Info) Summary {
	return Summary{
		ID: p.ConversationID(in.ID), Created: p.ConversationID(in.ID).Time(),
		Updated: in.Modified, Archived: in.Archived, Path: in.Path,
	}
}

// summary reads what a list shows of one conversation.
func (l *Local) summary(ctx context.Context, in journal.Info) (Summary, error) {
	v, err := l.view(ctx, p.ConversationID(in.ID))
	if err != nil {
		return Summary{}, err
	}
	defer v.Close()
	s := summaryOf(in)
	head, err := v.Read(ctx, 0, 16)
	if err != nil {
		return Summary{}, err
	}
	for _, r := range head {
		s.begin(event(r))
	}
	tail, err := v.Tail(ctx, 64)
	if err != nil {
		return Summary{}, err
	}
	for _, r := range tail {
		s.finish(event(r))
	}
	if s.Returned, err = countReturned(ctx, v, tail); err != nil {
		return Summary{}, err
	}
	renamed, ok, err := v.Last(ctx, p.Kind(&p.Renamed{}))
	if b, is := event(renamed).Body.(*p.Renamed); ok && is {
		s.Name = b.Title
	}
	s.Title = cmp.Or(s.Name, s.FirstLine)
	return s, err
}

func (s *Summary) begin(e p.Event) {
	switch b := e.Body.(type) {
	case *p.ConversationStarted:
		s.Cwd, s.Model, s.Provider = b.Settings.Cwd, b.Settings.Model, b.Settings.Provider
	case *p.UserMessage:
		if s.FirstLine == "" {
			s.FirstLine = firstLine(p.Written(b.Content))
		}
	}
}

func (s *Summary) finish(e p.Event) {
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

// countReturned returns how many messages are returned at the end of a conversation, whose last records are given. None of those says so if a turn has run for long.
func countReturned(ctx context.Context, v journal.View, tail []journal.Record) (int, error) {
	for _, r := range slices.Backward(tail) {
		if n, ok := returnedCount(event(r)); ok {
			return n, nil
		}
	}
	count, last := 0, uint64(0)
	for _, kind := range []p.Body{&p.InputReturned{}, &p.ReturnedResolved{}, &p.TurnEnded{}} {
		r, ok, err := v.Last(ctx, p.Kind(kind))
		if err != nil {
			return 0, err
		}
		if n, says := returnedCount(event(r)); ok && says && r.Seq > last {
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
