package foreign

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/foreign/sqlite"
	"github.com/fermata-agent/fermata/internal/regular"
)

// A snapshot is a copy of a database that does not change.
type snapshot struct {
	*sqlite.DB
	dir      string // of the copy
	files    []*os.File
	size     int64
	messages map[string][]ocMessage // by session, in order
	parts    map[string][]sqlite.Place
}

type ocMessage struct {
	id      string
	created int64
	at      sqlite.Place
}

// database returns the snapshot of the home's database, which is made when it is first needed.
func (h *Home) database(ctx context.Context) (*snapshot, error) {
	if h.snap != nil {
		return h.snap, nil
	}
	if h.Scratch == "" {
		return nil, errors.New("no directory to copy the database to")
	}
	if err := os.MkdirAll(h.Scratch, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(h.Scratch, "opencode-")
	if err != nil {
		return nil, err
	}
	s := &snapshot{dir: dir, messages: map[string][]ocMessage{}, parts: map[string][]sqlite.Place{}}
	if err := s.open(ctx, h.databaseFile()); err != nil {
		s.close()
		return nil, err
	}
	h.snap = s
	return s, nil
}

func (h *Home) databaseFile() string { return cmp.Or(h.File, filepath.Join(h.Dir, "opencode.db")) }

func (s *snapshot) close() {
	for _, f := range s.files {
		f.Close()
	}
	os.RemoveAll(s.dir)
}

// copyTries is how often a database that changes while it is copied is copied again.
const copyTries = 10

// open copies a database with its log, and opens the copy. The original is only read: SQLite itself would write
// the log into it.
func (s *snapshot) open(ctx context.Context, path string) error {
	names := []string{path, path + "-wal"}
	for try := 1; ; try++ {
		before := stamps(names)
		for _, name := range names {
			if err := copyFile(ctx, name, filepath.Join(s.dir, filepath.Base(name))); err != nil && !(errors.Is(err, fs.ErrNotExist) && name != path) {
				return err
			}
		}
		if slices.Equal(before, stamps(names)) {
			break
		}
		if try == copyTries {
			return fmt.Errorf("%s changes all the time: stop opencode, or try again later", path)
		}
	}
	var readers [2]io.ReaderAt
	var sizes [2]int64
	for i, name := range names {
		f, err := regular.Open(filepath.Join(s.dir, filepath.Base(name)))
		if errors.Is(err, fs.ErrNotExist) && i == 1 {
			break
		}
		if err != nil {
			return err
		}
		s.files = append(s.files, f)
		st, err := f.Stat()
		if err != nil {
			return err
		}
		readers[i], sizes[i] = f, st.Size()
		s.size += st.Size()
	}
	db, err := sqlite.Open(readers[0], sizes[0], readers[1], sizes[1])
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s.DB = db
	return s.index()
}

// stamps are the sizes and times of files, to see whether they change.
func stamps(names []string) []string {
	var list []string
	for _, name := range names {
		if st, err := os.Stat(name); err == nil {
			list = append(list, fmt.Sprint(name, st.Size(), st.ModTime().UnixNano()))
		}
	}
	return list
}

func copyFile(ctx context.Context, from, to string) error {
	in, err := regular.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, readerFunc(func(b []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return in.Read(b)
	}))
	return errors.Join(err, out.Close())
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// index notes where the messages and parts of each session are, so that a session is read without the others.
func (s *snapshot) index() error {
	for name, columns := range map[string][]string{"session": {"id", "directory", "title"}, "message": {"id", "session_id", "data"}, "part": {"id", "message_id", "data"}} {
		if !s.Has(name, columns...) {
			return fmt.Errorf("the database has no table %s as opencode makes it", name)
		}
	}
	err := s.Each("message", []string{"id", "session_id", "time_created"}, func(r sqlite.Row) bool {
		session := r.Get("session_id").Text()
		s.messages[session] = append(s.messages[session], ocMessage{r.Get("id").Text(), r.Get("time_created").Int(), r.Place()})
		return true
	})
	if err != nil {
		return err
	}
	for _, list := range s.messages {
		slices.SortStableFunc(list, func(a, b ocMessage) int { return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.id, b.id)) })
	}
	type part struct {
		id string
		at sqlite.Place
	}
	parts := map[string][]part{}
	err = s.Each("part", []string{"id", "message_id"}, func(r sqlite.Row) bool {
		message := r.Get("message_id").Text()
		parts[message] = append(parts[message], part{r.Get("id").Text(), r.Place()})
		return true
	})
	for message, list := range parts {
		slices.SortStableFunc(list, func(a, b part) int { return cmp.Compare(a.id, b.id) })
		for _, p := range list {
			s.parts[message] = append(s.parts[message], p.at)
		}
	}
	return err
}

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

// revertedFrom returns the message from which on a session was reverted, if it was.
func (s *snapshot) revertedFrom(session string) string {
	id := ""
	_ = s.Each("session", []string{"id", "revert"}, func(r sqlite.Row) bool { // read before
		if r.Get("id").Text() != session {
			return true
		}
		var revert struct {
			Message string `json:"messageID"`
		}
		_ = json.Unmarshal([]byte(r.Get("revert").Text()), &revert) // null if it was not
		id = revert.Message
		return false
	})
	return id
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
