package foreign

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/foreign/sqlite"
)

func (h *Home) listOpenCode(ctx context.Context) ([]Session, error) {
	db, err := h.database(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Session
	columns := []string{"id", "parent_id", "directory", "title", "version", "time_created", "time_updated", "time_archived"}
	err = db.Each("session", columns, func(r sqlite.Row) bool {
		list = append(list, Session{
			Agent: OpenCode, ID: r.Get("id").Text(), Parent: r.Get("parent_id").Text(), Path: h.databaseFile(),
			Cwd: r.Get("directory").Text(), Title: Title(r.Get("title").Text()), Version: r.Get("version").Text(),
			Started: millis(r.Get("time_created").Int()), Modified: millis(r.Get("time_updated").Int()),
			Archived: r.Get("time_archived").Int() != 0,
		})
		return true
	})
	return list, err
}

func millis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
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
	db, err := h.database(ctx)
	if err != nil {
		return conv, err
	}
	hidden := db.revertedFrom(s.ID)
	for _, m := range db.messages[s.ID] {
		if ctx.Err() != nil {
			return conv, context.Cause(ctx)
		}
		if m.id == hidden {
			break
		}
		row, err := db.At("message", []string{"data"}, m.at)
		var data ocData
		if err == nil {
			err = json.Unmarshal([]byte(row.Get("data").Text()), &data)
		}
		if err != nil {
			conv.lose("message %s was left out: it cannot be read", m.id)
			continue
		}
		db.message(&conv, m.id, data)
	}
	return conv, nil
}

// message adds the steps of one message.
func (s *snapshot) message(conv *Conversation, id string, data ocData) {
	at := millis(data.Time.Created)
	conv.Model = cmp.Or(data.Model, conv.Model)
	user := Step{Kind: User, Time: at}
	var texts []string
	for _, place := range s.parts[id] {
		row, err := s.At("part", []string{"data"}, place)
		var part ocPart
		if err == nil {
			err = json.Unmarshal([]byte(row.Get("data").Text()), &part)
		}
		if err != nil {
			conv.lose("a part of message %s was left out: it cannot be read", id)
			continue
		}
		switch {
		case data.Role != "user":
			conv.Steps = append(conv.Steps, part.steps(at, data)...)
		case part.Type == "text" && !part.Synthetic && !part.Ignored:
			texts = append(texts, unquote(part.Text))
		case part.Type == "file" && strings.HasPrefix(part.MIME, "image/"):
			user.Images = append(user.Images, part.URL)
		}
	}
	if data.Role == "user" {
		if user.Text = strings.Join(texts, "\n"); user.Text != "" || len(user.Images) > 0 {
			conv.Title = cmp.Or(conv.Title, Title(user.Text))
			conv.Steps = append(conv.Steps, user)
		}
		return
	}
	conv.endAnswer(at, data)
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
	if st.Time.End >= st.Time.Start && st.Time.End != 0 {
		out.Time, out.Elapsed = millis(st.Time.End), time.Duration(st.Time.End-st.Time.Start)*time.Millisecond
	}
	return append(steps, out)
}
