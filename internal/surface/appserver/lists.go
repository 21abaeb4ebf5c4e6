package appserver

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
	p "github.com/fermata-agent/fermata/protocol"
)

// A page of a list that names no limit has this many.
const defaultLimit = 25

func (c *conn) threadList(ctx context.Context, _ *jsonrpc.Request, in wire.ThreadList) (wire.Threads, error) {
	out := wire.Threads{Data: []wire.Thread{}}
	if in.SectionID != "" || in.ParentThreadID != "" || in.AncestorID != "" || !ours(in.SourceKinds) {
		return out, nil // there is no such thread
	}
	dirs, err := directories(in.Cwd)
	if err != nil {
		return out, err
	}
	limit := in.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	o := engine.ListOptions{Limit: limit, Cursor: in.Cursor, Archived: in.Archived}
	if in.SortDirection == "asc" || in.SortKey == "created_at" {
		return c.sortedList(ctx, in, dirs, limit)
	}
	for len(out.Data) < limit {
		page, err := c.s.o.Engine.List(ctx, o)
		if err != nil {
			return out, badParams("%v", err)
		}
		for _, s := range page.Items {
			if matches(in, dirs, s) {
				out.Data = append(out.Data, c.s.listed(ctx, s))
			}
		}
		if o.Cursor = page.Next; o.Cursor == "" {
			return out, nil
		}
	}
	out.NextCursor = &o.Cursor
	return out, nil
}

// sortedList is a list in an order that needs all of it. Its cursor is a number.
func (c *conn) sortedList(ctx context.Context, in wire.ThreadList, dirs []string, limit int) (wire.Threads, error) {
	out := wire.Threads{Data: []wire.Thread{}}
	var all []engine.Summary
	for o := (engine.ListOptions{Limit: 1000, Archived: in.Archived}); ; {
		page, err := c.s.o.Engine.List(ctx, o)
		if err != nil {
			return out, failed(err, notFound, "")
		}
		all = append(all, page.Items...)
		if o.Cursor = page.Next; o.Cursor == "" {
			break
		}
	}
	all = slices.DeleteFunc(all, func(s engine.Summary) bool { return !matches(in, dirs, s) })
	slices.SortStableFunc(all, func(a, b engine.Summary) int {
		order := b.Updated.Compare(a.Updated)
		if in.SortKey == "created_at" {
			order = cmp.Or(b.Created.Compare(a.Created), strings.Compare(string(b.ID), string(a.ID)))
		}
		if in.SortDirection == "asc" {
			return -order
		}
		return order
	})
	from, err := offset(in.Cursor, len(all))
	if err != nil {
		return out, err
	}
	to := min(from+limit, len(all))
	for _, s := range all[from:to] {
		out.Data = append(out.Data, c.s.listed(ctx, s))
	}
	if to < len(all) {
		out.NextCursor = orNull(strconv.Itoa(to))
	}
	return out, nil
}

func offset(cursor string, most int) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(cursor)
	if err != nil || n < 0 {
		return 0, badParams("cursor: %q is not one of this list", cursor)
	}
	return min(n, most), nil
}

// ours reports whether threads of these kinds are asked for: all of ours count as begun by a person.
func ours(kinds []string) bool {
	return len(kinds) == 0 || slices.Contains(kinds, "cli") || slices.Contains(kinds, "vscode")
}

func directories(raw json.RawMessage) ([]string, error) {
	var one string
	var many []string
	switch {
	case len(raw) == 0, string(raw) == "null":
		return nil, nil
	case json.Unmarshal(raw, &one) == nil:
		return []string{one}, nil
	case json.Unmarshal(raw, &many) == nil:
		return many, nil
	}
	return nil, badParams("cwd: neither a directory nor a list of them")
}

func matches(in wire.ThreadList, dirs []string, s engine.Summary) bool {
	switch {
	case len(dirs) > 0 && !slices.Contains(dirs, s.Cwd),
		len(in.ModelProviders) > 0 && !slices.Contains(in.ModelProviders, s.Provider),
		slices.Contains(in.Excluded, string(s.ID)):
		return false
	}
	return strings.Contains(strings.ToLower(s.Title+"\n"+s.LastLine), strings.ToLower(in.SearchTerm))
}

// listed is a thread as a list shows it.
func (s *Server) listed(ctx context.Context, in engine.Summary) wire.Thread {
	t := s.newThread(in.ID)
	updated := in.Updated.Unix()
	t.Name, t.Preview = orNull(in.Name), in.FirstLine
	t.ModelProvider, t.Cwd, t.Model = in.Provider, in.Cwd, orNull(in.Model)
	t.UpdatedAt, t.RecencyAt, t.Path = updated, &updated, orNull(in.Path)
	t.Status = wire.NotLoaded
	if s.isLoaded(in.ID) {
		t.Status = s.status(ctx, in.ID)
	}
	return t
}

// status is what a loaded thread is doing.
func (s *Server) status(ctx context.Context, id p.ConversationID) wire.ThreadStatus {
	snap, err := s.o.Engine.Resume(ctx, id)
	switch {
	case err != nil:
		return wire.NotLoaded
	case len(snap.PendingApprovals) > 0:
		return wire.Active("waitingOnApproval")
	case snap.Active:
		return wire.Active()
	case snap.Ended == p.Failed:
		return wire.SystemError
	}
	return wire.Idle
}

// A found is a thread that a search has found.
type found struct {
	Thread  wire.Thread `json:"thread"`
	Snippet string      `json:"snippet"`
}

type searched struct {
	Data            []found `json:"data"`
	NextCursor      *string `json:"nextCursor"`
	BackwardsCursor *string `json:"backwardsCursor"`
}

func (c *conn) threadSearch(ctx context.Context, r *jsonrpc.Request, in wire.ThreadList) (searched, error) {
	list, err := c.threadList(ctx, r, in)
	out := searched{Data: []found{}, NextCursor: list.NextCursor}
	for _, t := range list.Data {
		out.Data = append(out.Data, found{t, title(t)})
	}
	return out, err
}

// title is what a thread is called, or how it begins.
func title(t wire.Thread) string {
	if t.Name != nil {
		return *t.Name
	}
	return t.Preview
}

func (c *conn) threadLoadedList(context.Context, *jsonrpc.Request, wire.Paging) (wire.IDs, error) {
	out := wire.IDs{Data: []string{}}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for id := range c.s.loaded {
		out.Data = append(out.Data, string(id))
	}
	slices.Sort(out.Data)
	return out, nil
}

// page is a part of a list in either direction; its cursor is a number.
func page[T any](all []T, cursor string, limit int, direction string) (data []T, next *string, err error) {
	if direction != "asc" {
		slices.Reverse(all)
	}
	from, err := offset(cursor, len(all))
	if err != nil {
		return nil, nil, err
	}
	if limit <= 0 {
		limit = 100
	}
	to := min(from+limit, len(all))
	if to < len(all) {
		next = orNull(strconv.Itoa(to))
	}
	return append([]T{}, all[from:to]...), next, nil
}

func (c *conn) turnsList(ctx context.Context, _ *jsonrpc.Request, in wire.TurnsList) (wire.Turns, error) {
	id, err := parse(in.ThreadID, notRead)
	if err != nil {
		return wire.Turns{}, err
	}
	f, err := c.s.read(ctx, id)
	if err != nil {
		return wire.Turns{}, failed(err, notRead, id)
	}
	data, next, err := page(f.Turns(), in.Cursor, in.Limit, in.SortDirection)
	for i := range data {
		data[i] = viewed(data[i], in.ItemsView)
	}
	return wire.Turns{Data: data, NextCursor: next}, err
}

// viewed is a turn with as many of its items as are wanted.
func viewed(t wire.Turn, view string) wire.Turn {
	switch view {
	case "full":
		return t
	case "notLoaded":
		t.Items, t.ItemsView = []wire.Item{}, view
		return t
	}
	var short []wire.Item
	var last *wire.Item
	for _, it := range t.Items {
		switch it.Of.(type) {
		case wire.UserMessage:
			short = append(short, it)
		case wire.AgentMessage:
			last = &it
		}
	}
	if last != nil {
		short = append(short, *last)
	}
	t.Items, t.ItemsView = append([]wire.Item{}, short...), "summary"
	return t
}

func (c *conn) itemsList(ctx context.Context, _ *jsonrpc.Request, in wire.ItemsList) (wire.Items, error) {
	id, err := parse(in.ThreadID, notRead)
	if err != nil {
		return wire.Items{}, err
	}
	f, err := c.s.read(ctx, id)
	if err != nil {
		return wire.Items{}, failed(err, notRead, id)
	}
	var all []wire.ItemEntry
	for _, t := range f.Turns() {
		for _, it := range t.Items {
			if in.TurnID == "" || in.TurnID == t.ID {
				all = append(all, wire.ItemEntry{TurnID: t.ID, Item: it})
			}
		}
	}
	var cursor string
	if len(in.Cursor) > 0 && json.Unmarshal(in.Cursor, &cursor) != nil {
		return wire.Items{}, badParams("cursor: it is not one of this list")
	}
	data, next, err := page(all, cursor, in.Limit, in.SortDirection)
	return wire.Items{Data: data, NextCursor: next}, err
}
