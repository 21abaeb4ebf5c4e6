package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/surface/web/access"
	"github.com/fermata-agent/fermata/internal/surface/web/live"
	"github.com/fermata-agent/fermata/internal/surface/web/proof"
	"github.com/fermata-agent/fermata/internal/surface/web/render"
	p "github.com/fermata-agent/fermata/protocol"
)

// sessionInfo is what a client may know of its session.
type sessionInfo struct {
	ID       string `json:"id"`
	ReadOnly bool   `json:"read_only"`
	Version  string `json:"version"`
	Dir      string `json:"dir"`
	Push     string `json:"push,omitempty"` // the key for push messages, if they are possible
}

func (s *Server) info(x access.Session) sessionInfo {
	info := sessionInfo{ID: x.ID, ReadOnly: x.ReadOnly, Version: s.o.Version, Dir: s.o.Dir}
	if s.o.Push != nil {
		info.Push = s.o.Push.Key()
	}
	return info
}

// subscribe notes that the browser of this session wants to be notified.
func (s *Server) subscribe(w http.ResponseWriter, r *request) {
	var in struct {
		Endpoint       string `json:"endpoint"`
		ExpirationTime any    `json:"expirationTime"` // browsers send it; it ends with the session
		Keys           struct {
			Auth   string `json:"auth"`
			P256dh string `json:"p256dh"`
		} `json:"keys"`
	}
	if !body(w, r, &in) {
		return
	}
	c := access.PushClient{Session: r.session.ID, Endpoint: in.Endpoint, Auth: in.Keys.Auth, P256dh: in.Keys.P256dh}
	if s.o.Push == nil {
		refuse(w, http.StatusConflict, "subscription", "browsers are not notified here")
		return
	}
	if err := s.o.Push.Subscribe(s.o.Access, c); err != nil {
		refuse(w, http.StatusBadRequest, "subscription", err.Error())
		return
	}
	select {
	case s.pushes <- struct{}{}:
	default: // it is known
	}
	w.WriteHeader(http.StatusNoContent)
}

type loginAnswer struct {
	Token   string      `json:"token,omitempty"` // of a program
	Session sessionInfo `json:"session"`
}

// login exchanges the code of a link for a session. A browser sends its public key and signs the request with it; a program
// gets a token.
func (s *Server) login(w http.ResponseWriter, r *request) {
	if !isJSON(r.Request) {
		refuse(w, http.StatusUnsupportedMediaType, "content_type", "send application/json")
		return
	}
	signed := r.Header.Get(proof.Header) != ""
	if signed {
		var err error
		if r.claim, err = proof.Parse(r.Header.Get(proof.Header)); err != nil {
			refuse(w, http.StatusForbidden, "proof", err.Error())
			return
		}
		if !s.readClaimed(w, r, s.fresh.Check) { // the link works once, so that nothing need be remembered of who is not known
			return
		}
	}
	var in struct {
		Code string `json:"code"`
		Name string `json:"name"`
		Key  string `json:"key"`
	}
	if !body(w, r, &in) {
		return
	}
	browser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	switch {
	case browser && in.Key == "":
		refuse(w, http.StatusForbidden, "proof", "a browser needs a key of its own: tokens are for programs")
		return
	case (in.Key != "") != signed || signed && !r.claim.SignedBy(in.Key):
		refuse(w, http.StatusForbidden, "proof", "who logs in with a key signs the request with it")
		return
	}
	c, err := s.o.Access.Login(in.Code, access.Client{Name: shorten(in.Name, 100), Key: in.Key, Origin: s.origins[r.Host]})
	if err != nil {
		s.refuseStranger(w, r.Request)
		return
	}
	answer(w, http.StatusOK, loginAnswer{c.Token, s.info(c.Session)})
}

func shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most])
	}
	return s
}

func (s *Server) session(w http.ResponseWriter, r *request) {
	answer(w, http.StatusOK, s.info(r.session))
}

func (s *Server) logout(w http.ResponseWriter, r *request) {
	if _, err := s.o.Access.Revoke(r.session.ID); err != nil {
		failed(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// number reads a number of a query; without one it is 0.
func number(w http.ResponseWriter, text, name string, most int) (int, bool) {
	if text == "" {
		return 0, true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		refuse(w, http.StatusBadRequest, "field", fmt.Sprintf("%s must be a number up to %d", name, most))
		return 0, false
	}
	return n, true
}

type createAnswer struct {
	ID      p.ConversationID `json:"id"`
	Remarks []string         `json:"remarks,omitempty"`
	Receipt *p.Receipt       `json:"receipt,omitempty"`
}

// create begins a conversation, and its first turn if there is a prompt.
func (s *Server) create(w http.ResponseWriter, r *request) {
	var in struct {
		app.SettingsRequest
		Prompt string `json:"prompt"`
	}
	if !body(w, r, &in) {
		return
	}
	settings, remarks, err := s.o.Settings(in.SettingsRequest)
	if err != nil {
		refuse(w, http.StatusBadRequest, "settings", err.Error())
		return
	}
	id, err := s.once(r, func(ctx context.Context) (p.ConversationID, error) { return s.o.Engine.Create(ctx, settings) })
	if err != nil {
		failed(w, err)
		return
	}
	s.lobby.Kick()
	out := createAnswer{ID: id, Remarks: remarks}
	if in.Prompt != "" {
		receipt, err := s.deliver(r, id, p.UserTurn{Content: p.Text(in.Prompt)})
		if err != nil {
			failed(w, err)
			return
		}
		out.Receipt = &receipt
	}
	answer(w, http.StatusCreated, out)
}

// conversation reads the id in the path. It answers by itself if that is none.
func conversation(w http.ResponseWriter, r *request) (p.ConversationID, bool) {
	id, err := p.ParseConversationID(r.PathValue("id"))
	if err != nil {
		refuse(w, http.StatusNotFound, "not_found", err.Error())
		return "", false
	}
	return id, true
}

// conversationAnd reads the id in the path and a number of the query.
func conversationAnd(w http.ResponseWriter, r *request, name string) (id p.ConversationID, n int, ok bool) {
	if id, ok = conversation(w, r); !ok {
		return "", 0, false
	}
	n, ok = number(w, r.URL.Query().Get(name), name, 1<<30)
	return id, n, ok
}

func (s *Server) get(w http.ResponseWriter, r *request) {
	id, ok := conversation(w, r)
	if !ok {
		return
	}
	snap, err := s.o.Engine.Resume(r.Context(), id)
	if err != nil {
		failed(w, err)
		return
	}
	answer(w, http.StatusOK, snap)
}

func (s *Server) fork(w http.ResponseWriter, r *request) {
	var in struct {
		UpTo p.Seq `json:"up_to"`
	}
	id, ok := conversation(w, r)
	if !ok || !body(w, r, &in) {
		return
	}
	copied, err := s.once(r, func(ctx context.Context) (p.ConversationID, error) { return s.o.Engine.Fork(ctx, id, in.UpTo) })
	if err != nil {
		failed(w, err)
		return
	}
	s.lobby.Kick()
	answer(w, http.StatusCreated, createAnswer{ID: copied})
}

func (s *Server) archive(w http.ResponseWriter, r *request)   { s.move(w, r, s.o.Engine.Archive) }
func (s *Server) unarchive(w http.ResponseWriter, r *request) { s.move(w, r, s.o.Engine.Unarchive) }

// move takes a conversation from one list to the other.
func (s *Server) move(w http.ResponseWriter, r *request, to func(context.Context, p.ConversationID) error) {
	id, ok := conversation(w, r)
	if !ok {
		return
	}
	if err := to(r.Context(), id); err != nil {
		failed(w, err)
		return
	}
	s.lobby.Kick()
	w.WriteHeader(http.StatusNoContent)
}

// diffAnswer is a diff, with what a page shows of it.
type diffAnswer struct {
	live.Diff
	HTML string `json:"html"`
}

func (s *Server) diff(w http.ResponseWriter, r *request) {
	id, turn, ok := conversationAnd(w, r, "turn")
	if !ok {
		return
	}
	d, err := s.hub.Diff(r.Context(), id, p.TurnID(turn))
	if err != nil {
		failed(w, err)
		return
	}
	if d.Turns == nil {
		d.Turns = []p.TurnID{}
	}
	answer(w, http.StatusOK, diffAnswer{d, render.Diff(d.Diff)})
}

type undoAnswer struct {
	Turn  p.TurnID `json:"turn"`
	Files int      `json:"files"` // how many change
	Diff  string   `json:"diff"`
	HTML  string   `json:"html"`
	Notes []string `json:"notes"` // what is not put back
	Shown string   `json:"shown"` // the hash of all this, which the request to undo may repeat
}

func undoOf(id p.ConversationID, u *app.Undo) undoAnswer {
	notes := u.Notes
	if notes == nil {
		notes = []string{}
	}
	return undoAnswer{u.Turn, u.Files, u.Diff, render.Diff(u.Diff), notes, render.ShownUndo(id, u.Turn, u.Diff)}
}

func (s *Server) previewUndo(w http.ResponseWriter, r *request) {
	id, turn, ok := conversationAnd(w, r, "turn")
	if !ok {
		return
	}
	u, err := s.o.Undo(r.Context(), id, p.TurnID(turn))
	if err != nil {
		refusedUndo(w, err)
		return
	}
	answer(w, http.StatusOK, undoOf(id, u))
}

// undo puts the files of a turn back. The turn must be named, as the preview did.
func (s *Server) undo(w http.ResponseWriter, r *request) {
	var in struct {
		Turn p.TurnID `json:"turn"`
	}
	id, ok := conversation(w, r)
	if !ok || !body(w, r, &in) {
		return
	}
	if in.Turn <= 0 {
		refuse(w, http.StatusBadRequest, "field", "turn must be given, as the preview names it")
		return
	}
	u, err := s.o.Undo(r.Context(), id, in.Turn)
	if err == nil {
		if !wasShown(w, r, render.ShownUndo(id, u.Turn, u.Diff)) {
			return
		}
		err = u.Do(r.Context())
	}
	if err != nil {
		refusedUndo(w, err)
		return
	}
	answer(w, http.StatusOK, undoOf(id, u))
}

// refusedUndo says why a turn is not undone, which is mostly that the files are not what the turn left.
func refusedUndo(w http.ResponseWriter, err error) {
	if e := (*app.Error)(nil); !errors.As(err, &e) {
		err = &app.Error{Err: err}
	}
	failed(w, err)
}

type itemsAnswer struct {
	Items []live.Patch `json:"items"`
}

// maxItems is how many items of the past a page gets at a time.
const maxItems = 200

// items gives those before the nth.
func (s *Server) items(w http.ResponseWriter, r *request) {
	id, before, ok := conversationAnd(w, r, "before")
	if !ok {
		return
	}
	list, err := s.hub.Items(r.Context(), id, before, maxItems)
	if err != nil {
		failed(w, err)
		return
	}
	if list == nil {
		list = []live.Patch{}
	}
	answer(w, http.StatusOK, itemsAnswer{list})
}

type itemAnswer struct {
	HTML string `json:"html"`
}

func (s *Server) item(w http.ResponseWriter, r *request) {
	id, ok := conversation(w, r)
	if !ok {
		return
	}
	html, err := s.hub.Whole(r.Context(), id, r.PathValue("item"))
	switch {
	case err != nil:
		failed(w, err)
	case html == "":
		refuse(w, http.StatusNotFound, "not_found", "there is no such item")
	default:
		answer(w, http.StatusOK, itemAnswer{html})
	}
}
