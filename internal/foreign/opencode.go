package foreign

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"strings"
	"time"
)

// An ocSource is where opencode keeps sessions: its database, or, before version 1.2, files.
type ocSource interface {
	// messages and parts return documents in their order.
	messages(session string) iter.Seq[ocDocument]
	parts(session, message string) iter.Seq[ocDocument]
	// reverted returns from where on a session was reverted, if it was.
	reverted(session string) ocRevert
}

// An ocDocument is a message or a part of one, as JSON.
type ocDocument struct {
	id   string
	data []byte
	err  error // why it cannot be read
}

func (d ocDocument) decode(into any) error {
	if d.err != nil {
		return d.err
	}
	return json.Unmarshal(d.data, into)
}

// An ocRevert names the first message that was reverted, and its first part if not all of them were.
type ocRevert struct {
	Message string `json:"messageID"`
	Part    string `json:"partID"`
}

// listOpenCode lists the sessions of the database, and those files that opencode has not moved into it.
func (h *Home) listOpenCode(ctx context.Context) ([]Session, error) {
	if isSessionFile(h.File) {
		s, err := readSessionFile(h.File)
		return []Session{s}, err
	}
	var list []Session
	db, err := h.database(ctx)
	if err == nil {
		list, err = db.sessions(h.databaseFile())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) || h.File != "" {
		return list, err
	}
	known := map[string]bool{}
	for _, s := range list {
		known[s.ID] = true
	}
	files, err := h.sessionFiles(ctx)
	for _, s := range files {
		if !known[s.ID] {
			known[s.ID] = true
			list = append(list, s)
		}
	}
	return list, err
}

func millis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return plausible(time.UnixMilli(ms))
}

// ocData is the data of a message.
type ocData struct {
	Role    string `json:"role"`
	Model   string `json:"modelID"`
	Summary any    `json:"summary"` // true for the answer to a compaction
	Error   *struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
		} `json:"data"`
	} `json:"error"`
	Time struct {
		Created   int64 `json:"created"`
		Completed int64 `json:"completed"`
	} `json:"time"`
	Tokens struct {
		Input     int64 `json:"input"`
		Output    int64 `json:"output"`
		Reasoning int64 `json:"reasoning"`
		Cache     struct {
			Read  int64 `json:"read"`
			Write int64 `json:"write"`
		} `json:"cache"`
	} `json:"tokens"`
}

// ocPart is the data of a part.
type ocPart struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Synthetic bool   `json:"synthetic"`
	Ignored   bool   `json:"ignored"`
	CallID    string `json:"callID"`
	Tool      string `json:"tool"`
	MIME      string `json:"mime"`
	URL       string `json:"url"`
	State     struct {
		Status   string          `json:"status"`
		Input    json.RawMessage `json:"input"`
		Output   string          `json:"output"`
		Error    string          `json:"error"`
		Metadata struct {
			Exit    *int   `json:"exit"`
			Diff    string `json:"diff"`
			Session string `json:"sessionId"`
		} `json:"metadata"`
		Time struct {
			Start int64 `json:"start"`
			End   int64 `json:"end"`
		} `json:"time"`
	} `json:"state"`
}

func (h *Home) readOpenCode(ctx context.Context, s Session) (Conversation, error) {
	conv := Conversation{Session: s}
	src, err := h.sourceOf(ctx, s)
	if err != nil {
		return conv, err
	}
	reverted := src.reverted(s.ID)
	for m := range src.messages(s.ID) {
		if ctx.Err() != nil {
			return conv, context.Cause(ctx)
		}
		if m.id == reverted.Message && reverted.Part == "" {
			break
		}
		var data ocData
		if m.decode(&data) != nil {
			conv.lose("message %s was left out: it cannot be read", m.id)
			continue
		}
		if m.id != reverted.Message {
			conv.message(src, m.id, "", data)
			continue
		}
		conv.message(src, m.id, reverted.Part, data)
		break
	}
	return conv, nil
}

// sourceOf returns where a session is.
func (h *Home) sourceOf(ctx context.Context, s Session) (ocSource, error) {
	if isSessionFile(s.Path) {
		return filesOf(s.Path), nil
	}
	return h.database(ctx)
}

// message adds the steps of one message, up to a part if one is named.
func (c *Conversation) message(src ocSource, id, end string, data ocData) {
	at := millis(data.Time.Created)
	c.Model = cmp.Or(data.Model, c.Model)
	user := Step{Kind: User, Time: at}
	var texts []string
	for doc := range src.parts(c.ID, id) {
		if end != "" && doc.id >= end {
			break
		}
		var part ocPart
		if doc.decode(&part) != nil {
			c.lose("a part of message %s was left out: it cannot be read", id)
			continue
		}
		switch {
		case data.Role != "user":
			c.Steps = append(c.Steps, part.steps(at, data)...)
		case part.Type == "text" && !part.Synthetic && !part.Ignored:
			texts = append(texts, unquote(part.Text))
		case part.Type == "file" && strings.HasPrefix(part.MIME, "image/"):
			user.Images = append(user.Images, part.URL)
		}
	}
	if data.Role == "user" {
		if user.Text = strings.Join(texts, "\n"); user.Text != "" || len(user.Images) > 0 {
			c.Title = cmp.Or(c.Title, Title(user.Text))
			c.Steps = append(c.Steps, user)
		}
		return
	}
	c.endAnswer(at, data)
}

// endAnswer adds what is known of the end of an answer.
func (c *Conversation) endAnswer(at time.Time, data ocData) {
	t := data.Tokens
	if in := t.Input + t.Cache.Read + t.Cache.Write; in+t.Output > 0 {
		u := Step{Kind: Usage, Time: at}
		u.Tokens.Input, u.Tokens.Cached, u.Tokens.CacheWrite = in, t.Cache.Read, t.Cache.Write
		u.Tokens.Output, u.Tokens.Reasoning, u.Tokens.Total = t.Output+t.Reasoning, t.Reasoning, in+t.Output+t.Reasoning
		c.Steps = append(c.Steps, u)
	}
	switch {
	case data.Error != nil && data.Error.Name == "MessageAbortedError":
		c.Steps = append(c.Steps, Step{Kind: Interrupted, Time: at})
	case data.Error != nil:
		c.Steps = append(c.Steps, Step{Kind: Failed, Time: at, Text: cmp.Or(data.Error.Data.Message, data.Error.Name)})
	case data.Time.Completed != 0:
		c.Steps = append(c.Steps, Step{Kind: Completed, Time: millis(data.Time.Completed)})
	}
}

// unquote removes the quotation marks that "opencode run" puts around a prompt with spaces.
func unquote(text string) string {
	if inner, ok := strings.CutPrefix(text, `"`); ok && strings.Contains(inner, " ") {
		if inner, ok = strings.CutSuffix(strings.TrimSpace(inner), `"`); ok && !strings.Contains(inner, `"`) {
			return inner
		}
	}
	return text
}

// steps makes steps of a part of an answer. A call and its output are one part.
func (part ocPart) steps(at time.Time, data ocData) []Step {
	switch part.Type {
	case "text":
		switch {
		case part.Text == "":
			return nil
		case data.Summary == true:
			return []Step{{Kind: Compaction, Time: at, Text: part.Text}}
		}
		return []Step{{Kind: Message, Time: at, Text: part.Text, Partial: data.Time.Completed == 0}}
	case "reasoning":
		if part.Text == "" {
			return nil
		}
		return []Step{{Kind: Thought, Time: at, Text: part.Text}}
	case "tool":
		return part.call(at)
	}
	return nil
}

func (part ocPart) call(at time.Time) []Step {
	st := part.State
	if st.Time.Start != 0 {
		at = millis(st.Time.Start)
	}
	steps := []Step{{Kind: Call, Time: at, ID: part.CallID, Name: part.Tool, Input: string(st.Input)}}
	if st.Status != "completed" && st.Status != "error" {
		return steps
	}
	out := Step{Kind: Output, Time: at, ID: part.CallID, Text: st.Output, ExitCode: st.Metadata.Exit, Diff: st.Metadata.Diff, Child: st.Metadata.Session}
	if st.Status == "error" {
		out.Text, out.Bad = st.Error, true
	}
	if start, end := millis(st.Time.Start), millis(st.Time.End); !start.IsZero() && end.After(start) {
		out.Time, out.Elapsed = end, end.Sub(start)
	}
	return append(steps, out)
}
