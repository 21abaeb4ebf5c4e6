package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/surface/web/live"
	"github.com/fermata-agent/fermata/internal/surface/web/render"
	p "github.com/fermata-agent/fermata/protocol"
)

// Times of streams.
const (
	pingEvery = 10 * time.Second // also how soon a revoked session's streams end
	writeTime = 20 * time.Second // for one message; who takes longer is gone
	viewEvery = 60 * time.Millisecond
)

// A message is one server-sent event.
type message struct {
	event string // empty is the usual kind
	id    string // empty if it is no place to continue from
	data  any
	last  bool
}

// stream sends messages until the client leaves, the session is revoked or the server ends. produce sends them to
// the channel; it runs in a goroutine of its own and returns when its context ends.
func (s *Server) stream(w http.ResponseWriter, r *request, produce func(context.Context, chan<- message)) {
	if !s.streams.take(r.session) {
		refuse(w, http.StatusServiceUnavailable, "streams", "too many streams are open")
		return
	}
	defer s.streams.release(r.session)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // the request has been read; the stream has no end
	messages := make(chan message)
	produced := make(chan struct{})
	go func() { // ends with ctx
		defer close(produced)
		if err := s.o.Panicked.Run(func() { produce(ctx, messages) }); err != nil {
			push(ctx, messages, message{event: "problem", data: problemOf(err), last: true})
		}
	}()
	defer func() { cancel(); <-produced }()
	ping := time.NewTicker(s.ping)
	defer ping.Stop()
	text := ": hello\n\n"
	for {
		_ = out.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := fmt.Fprint(w, text); err != nil || out.Flush() != nil {
			return
		}
		select {
		case m := <-messages:
			text = m.String()
			if m.last {
				_, _ = fmt.Fprint(w, text)
				_ = out.Flush()
				return
			}
		case <-ping.C:
			text = ": ping\n\n"
			if _, err := s.o.Access.ByID(r.session.ID); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (m message) String() string {
	var b strings.Builder
	if m.event != "" {
		b.WriteString("event: " + m.event + "\n")
	}
	if m.id != "" {
		b.WriteString("id: " + m.id + "\n")
	}
	data, err := json.Marshal(m.data)
	if err != nil {
		data, _ = json.Marshal(problemOf(err))
	}
	b.WriteString("data: ")
	b.Write(data) // JSON in one line
	b.WriteString("\n\n")
	return b.String()
}

func problemOf(err error) problem {
	var e problem
	e.Error.Code, e.Error.Message = "internal", err.Error()
	if errors.Is(err, engine.ErrNotFound) {
		e.Error.Code = "not_found"
	}
	return e
}

// push sends unless ctx ends.
func push(ctx context.Context, to chan<- message, m message) bool {
	select {
	case to <- m:
		return true
	case <-ctx.Done():
		return false
	}
}

// events streams the events of a conversation after a cursor, which is the id of each. Pieces of open items
// come without an id: who continues is given all that there is of an open item, and tells by its offset what is new.
func (s *Server) events(w http.ResponseWriter, r *request) {
	id, ok := conversation(w, r)
	if !ok {
		return
	}
	text := r.Header.Get("Last-Event-ID")
	if q := r.URL.Query().Get("after"); q != "" {
		text = q
	}
	var after uint64
	if text != "" {
		var err error
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			refuse(w, http.StatusBadRequest, "field", "after must be the id of an event")
			return
		}
	}
	if err := s.exists(r.Context(), id); err != nil {
		failed(w, err)
		return
	}
	s.stream(w, r, func(ctx context.Context, to chan<- message) {
		for e, err := range s.o.Engine.Subscribe(ctx, id, p.Cursor(after)) {
			m := message{data: e}
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				push(ctx, to, message{event: "problem", data: problemOf(err), last: true})
				return
			case e.Seq != 0:
				m.id = strconv.FormatUint(uint64(e.Seq), 10)
			}
			if !push(ctx, to, m) {
				return
			}
		}
	})
}

// exists reports an error if a conversation cannot be read. Nothing is opened.
func (s *Server) exists(ctx context.Context, id p.ConversationID) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, err := range s.o.Engine.Subscribe(ctx, id, 0) {
		return err
	}
	return nil
}

// A viewRequest says what a page shows, and what it has of that.
type viewRequest struct {
	Conversation p.ConversationID `json:"conversation,omitempty"` // empty if it shows none
	Have         live.Have        `json:"have"`
	List         bool             `json:"list,omitempty"` // it shows the list
}

type listView struct {
	HTML    string `json:"html"`
	Waiting int    `json:"waiting"`        // how many conversations wait for a person
	Next    string `json:"next,omitempty"` // where the list continues
}

// view streams what a page shows: the list of conversations, and one of them.
func (s *Server) view(w http.ResponseWriter, r *request) {
	var in viewRequest
	if !body(w, r, &in) {
		return
	}
	if in.Conversation != "" {
		id, err := p.ParseConversationID(string(in.Conversation))
		if err != nil {
			refuse(w, http.StatusNotFound, "not_found", err.Error())
			return
		}
		if err := s.exists(r.Context(), id); err != nil {
			failed(w, err)
			return
		}
		in.Conversation = id
	}
	s.stream(w, r, func(ctx context.Context, to chan<- message) {
		listed := make(chan struct{})
		go func() { // ends with ctx
			defer close(listed)
			if !in.List {
				return
			}
			if err := s.o.Panicked.Run(func() { s.viewList(ctx, to) }); err != nil {
				push(ctx, to, message{event: "problem", data: problemOf(err), last: true})
			}
		}()
		if in.Conversation != "" {
			s.viewOne(ctx, in, to)
		}
		<-listed
	})
}

func (s *Server) viewList(ctx context.Context, to chan<- message) {
	var ver uint64
	for {
		rows, err := s.lobby.Next(ctx, ver)
		if err != nil {
			return
		}
		ver = rows.Ver
		v := listView{Next: rows.Next}
		for _, line := range rows.Unread {
			v.HTML += render.Unread(line)
		}
		for _, row := range rows.Rows {
			v.HTML += render.Row(row.Summary, row.Phase)
			if row.Phase == "waiting" {
				v.Waiting++
			}
		}
		if !push(ctx, to, message{event: "list", data: v}) {
			return
		}
	}
}

func (s *Server) viewOne(ctx context.Context, in viewRequest, to chan<- message) {
	v, err := s.hub.Open(ctx, in.Conversation, in.Have)
	if err != nil {
		return
	}
	defer v.Close()
	for {
		u, err := v.Next(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			push(ctx, to, message{event: "problem", data: problemOf(err)})
			return
		}
		if !push(ctx, to, message{event: "view", id: strconv.FormatUint(uint64(u.Cursor), 10), data: u}) {
			return
		}
		select { // what comes meanwhile is sent as one
		case <-time.After(viewEvery):
		case <-ctx.Done():
			return
		}
	}
}
