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
	"github.com/fermata-agent/fermata/internal/replay"
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
type Summary = p.Summary

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
			s = replay.Unreadable(in, err)
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

// summary reads what a list shows of one conversation.
func (l *Local) summary(ctx context.Context, in journal.Info) (Summary, error) {
	v, err := l.view(ctx, p.ConversationID(in.ID))
	if err != nil {
		return Summary{}, err
	}
	defer v.Close()
	return replay.Summary(ctx, in, v)
}
