package foreign

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/foreign/lines"
)

// codexLine is one line of a rollout.
type codexLine struct {
	Timestamp string          `json:"timestamp"`
	Ordinal   *int64          `json:"ordinal"`
	Type      string          `json:"type"`
	Payload   json.RawMessage `json:"payload"`
}

// codexMeta is the first line of a rollout.
type codexMeta struct {
	ID         string          `json:"id"`
	Timestamp  string          `json:"timestamp"`
	Cwd        string          `json:"cwd"`
	CLIVersion string          `json:"cli_version"`
	Source     json.RawMessage `json:"source"`
	ForkedFrom string          `json:"forked_from_id"`
	Base       *codexBase      `json:"history_base"`
	Git        struct {
		Commit string `json:"commit_hash"`
		Branch string `json:"branch"`
	} `json:"git"`
}

// codexBase says where the history of a file begins: in another file, up to an ordinal.
type codexBase struct {
	Thread string `json:"thread_id"`
	End    int64  `json:"end_ordinal_exclusive"`
}

// parent returns the session that started this one as a subagent, if one did.
func (m codexMeta) parent() string {
	var s struct {
		Subagent struct {
			Spawn struct {
				Parent string `json:"parent_thread_id"`
			} `json:"thread_spawn"`
		} `json:"subagent"`
	}
	_ = json.Unmarshal(m.Source, &s) // most sources are a word
	return s.Subagent.Spawn.Parent
}

// listCodex lists the rollouts. Several files can belong to one session: a revert begins a new one.
func (h *Home) listCodex(ctx context.Context) ([]Session, error) {
	titles := h.codexTitles(ctx)
	byID := map[string]*Session{}
	var order []string
	for _, root := range []string{"sessions", "archived_sessions"} {
		err := filepath.WalkDir(filepath.Join(h.Dir, root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !isRollout(d.Name()) {
				return ctx.Err()
			}
			s := codexHead(ctx, path, d)
			s.Archived = root == "archived_sessions"
			if title := titles[s.ID]; title != "" {
				s.Title = title
			}
			if was := byID[s.ID]; was != nil {
				s = joinFiles(*was, s)
			} else {
				order = append(order, s.ID)
			}
			byID[s.ID] = &s
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	var list []Session
	for _, id := range order {
		list = append(list, *byID[id])
	}
	return list, nil
}

func isRollout(name string) bool {
	return strings.HasPrefix(name, "rollout-") && (strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".jsonl.zst"))
}

// joinFiles makes one session of two files of it: the newer one counts, by the time in its name.
func joinFiles(a, b Session) Session {
	if filepath.Base(a.Path) > filepath.Base(b.Path) {
		a, b = b, a
	}
	b.files = append(slices.Clone(a.files), b.files...)
	slices.SortFunc(b.files, func(x, y string) int { return cmp.Compare(filepath.Base(x), filepath.Base(y)) })
	b.Size += a.Size
	b.Title = cmp.Or(b.Title, a.Title)
	b.Damaged = ""
	if !a.Started.IsZero() && a.Started.Before(b.Started) {
		b.Started = a.Started
	}
	return b
}

// codexHead reads the beginning of a rollout.
func codexHead(ctx context.Context, path string, d fs.DirEntry) Session {
	s := Session{Agent: Codex, Path: path, ID: rolloutID(path), files: []string{path}}
	if st, err := d.Info(); err == nil {
		s.Modified, s.Size = plausible(st.ModTime()), st.Size()
	}
	err := lines.Each(ctx, path, lines.HeadBytes, func(l lines.Line) error {
		var c codexLine
		if json.Unmarshal(l.Data, &c) != nil {
			return nil
		}
		switch c.Type {
		case "session_meta":
			var m codexMeta
			if json.Unmarshal(c.Payload, &m) == nil && s.Version == "" {
				s.setMeta(m)
			}
		case "turn_context":
			s.Model = cmp.Or(codexModel(c.Payload), s.Model)
		case "response_item":
			if step, ok := codexItem(c.Payload); ok && step.Kind == User && s.Title == "" {
				s.Title = Title(step.Text)
			}
		}
		if s.Title != "" && s.Model != "" {
			return lines.ErrEnough
		}
		return nil
	})
	if err != nil {
		s.Damaged = err.Error()
	}
	return s
}

func (s *Session) setMeta(m codexMeta) {
	s.ID = cmp.Or(m.ID, s.ID)
	s.Cwd, s.Version, s.ForkOf, s.Parent = m.Cwd, m.CLIVersion, m.ForkedFrom, m.parent()
	s.Branch, s.Commit = m.Git.Branch, m.Git.Commit
	s.Started = parseTime(m.Timestamp)
}

// rolloutID takes the id out of the name of a file: rollout-TIME-ID.jsonl, or rollout-TIME-ID_OTHER.jsonl after a revert.
func rolloutID(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	name = strings.TrimPrefix(name, "rollout-")
	const stamp = len("2006-01-02T15-04-05-")
	if len(name) > stamp {
		name = name[stamp:]
	}
	id, _, _ := strings.Cut(name, "_")
	return id
}

func codexModel(payload []byte) string {
	var m struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(payload, &m)
	return m.Model
}

// codexTitles returns the names that users gave; the last one counts.
func (h *Home) codexTitles(ctx context.Context) map[string]string {
	titles := map[string]string{}
	_ = lines.Each(ctx, filepath.Join(h.Dir, "session_index.jsonl"), lines.MaxText, func(l lines.Line) error { // there may be none
		var e struct {
			ID   string `json:"id"`
			Name string `json:"thread_name"`
		}
		if json.Unmarshal(l.Data, &e) == nil && e.Name != "" {
			titles[e.ID] = Title(e.Name)
		}
		return nil
	})
	return titles
}

// codexReader collects the steps of a session.
type codexReader struct {
	home  *Home
	conv  Conversation
	seen  map[string]bool // files that were read, so that bases cannot go round in a circle
	calls map[string]int  // by id of a call: its step, and later that of its output
	outs  map[string]int
}

// readCodex reads a session. branch is another file of it than the newest: one that was reverted.
func (h *Home) readCodex(ctx context.Context, s Session, branch string) (Conversation, error) {
	r := &codexReader{home: h, conv: Conversation{Session: s}, seen: map[string]bool{}, calls: map[string]int{}, outs: map[string]int{}}
	path := s.Path
	if len(s.files) > 0 {
		path = s.files[len(s.files)-1]
		for _, f := range s.files[:len(s.files)-1] {
			r.conv.Branches = append(r.conv.Branches, filepath.Base(f))
			if filepath.Base(f) == branch {
				path = f
			}
		}
	}
	if err := r.file(ctx, path, -1); err != nil {
		return r.conv, err
	}
	return r.conv, nil
}

// file reads the lines of a file with an ordinal below end, all if that is negative, after those that they begin with.
func (r *codexReader) file(ctx context.Context, path string, end int64) error {
	if r.seen[path] {
		r.conv.lose("%s refers to itself as its own beginning", filepath.Base(path))
		return nil
	}
	r.seen[path] = true
	var last []byte
	ordinals := map[int64]bool{}
	next, meta := int64(0), false
	return lines.Each(ctx, path, lines.MaxText, func(l lines.Line) error {
		var c codexLine
		if l.Bad == "" && json.Unmarshal(l.Data, &c) != nil {
			l.Bad = "it is not whole"
		}
		if l.Bad != "" {
			r.conv.lose("line %d of %s was left out: %s", l.Number, filepath.Base(path), l.Bad)
			return nil
		}
		n, doubled := next, string(last) == string(l.Data)
		if c.Ordinal != nil { // older versions have none
			n = *c.Ordinal
			doubled = doubled || ordinals[n]
			ordinals[n] = true
		}
		if doubled {
			r.conv.lose("line %d of %s repeats an earlier one", l.Number, filepath.Base(path))
			return nil
		}
		next, last = n+1, append(last[:0], l.Data...)
		if end >= 0 && n >= end {
			return lines.ErrEnough
		}
		if c.Type == "session_meta" {
			if meta {
				return nil // that of a parent, copied by older versions
			}
			meta = true
			return r.meta(ctx, path, c.Payload, end)
		}
		r.line(c)
		return nil
	})
}

// meta takes the head of a file, and reads the file in which its history begins.
func (r *codexReader) meta(ctx context.Context, path string, payload []byte, end int64) error {
	var m codexMeta
	if json.Unmarshal(payload, &m) != nil {
		return nil
	}
	if end < 0 {
		title := r.conv.Title
		r.conv.setMeta(m)
		r.conv.Title = title
	}
	if m.Base == nil {
		return nil
	}
	base := r.home.codexFile(path, m.Base.Thread, r.seen)
	if base == "" {
		r.conv.lose("its beginning is in session %s, which is not there", m.Base.Thread)
		return nil
	}
	return r.file(ctx, base, m.Base.End)
}

// codexFile finds the file of a session that a base names. For the session itself that is the newest file that is older.
func (h *Home) codexFile(from, thread string, seen map[string]bool) string {
	best := ""
	for _, root := range []string{"sessions", "archived_sessions"} {
		_ = filepath.WalkDir(filepath.Join(h.Dir, root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !isRollout(d.Name()) || seen[path] || rolloutID(path) != thread {
				return nil
			}
			older := rolloutID(from) != thread || d.Name() < filepath.Base(from)
			if older && (best == "" || d.Name() > filepath.Base(best)) {
				best = path
			}
			return nil
		})
	}
	return best
}

// line takes one line that is not the head.
func (r *codexReader) line(c codexLine) {
	at := parseTime(c.Timestamp)
	switch c.Type {
	case "turn_context":
		r.conv.Model = cmp.Or(codexModel(c.Payload), r.conv.Model)
	case "response_item":
		if step, ok := codexItem(c.Payload); ok {
			step.Time = at
			r.add(step)
		}
	case "compacted":
		r.compacted(c.Payload, at)
	case "event_msg":
		r.event(c.Payload, at)
	}
}

func (r *codexReader) add(s Step) {
	switch s.Kind {
	case Call:
		r.calls[s.ID] = len(r.conv.Steps)
	case Output:
		r.outs[s.ID] = len(r.conv.Steps)
	case User:
		if r.conv.Title == "" {
			r.conv.Title = Title(s.Text)
		}
	}
	r.conv.Steps = append(r.conv.Steps, s)
}

// compacted takes a compaction. The summary was asked for as a message just before, which is no message.
func (r *codexReader) compacted(payload []byte, at time.Time) {
	var c struct {
		Message     string            `json:"message"`
		Replacement []json.RawMessage `json:"replacement_history"`
	}
	if json.Unmarshal(payload, &c) != nil {
		return
	}
	text := c.Message
	if text == "" && len(c.Replacement) > 0 {
		step, _ := codexMessage(c.Replacement[len(c.Replacement)-1])
		text = step.Text
	}
	if n := len(r.conv.Steps); n > 0 && r.conv.Steps[n-1].Kind == Message && strings.Contains(text, strings.TrimSpace(r.conv.Steps[n-1].Text)) {
		r.conv.Steps = r.conv.Steps[:n-1]
	}
	r.add(Step{Kind: Compaction, Time: at, Text: text})
}

// codexEvent is what an event says for people, and only there.
type codexEvent struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Turns   int    `json:"num_turns"`
	Info    *struct {
		Last codexTokens `json:"last_token_usage"`
	} `json:"info"`
	Item struct {
		Type     string                     `json:"type"`
		ID       string                     `json:"id"`
		ExitCode *int                       `json:"exit_code"`
		Changes  map[string]json.RawMessage `json:"changes"`
		Duration json.RawMessage            `json:"duration"`
	} `json:"item"`
}

type codexTokens struct {
	Input     int64 `json:"input_tokens"`
	Cached    int64 `json:"cached_input_tokens"`
	Output    int64 `json:"output_tokens"`
	Reasoning int64 `json:"reasoning_output_tokens"`
	Total     int64 `json:"total_tokens"`
}

func (r *codexReader) event(payload []byte, at time.Time) {
	var e codexEvent
	if json.Unmarshal(payload, &e) != nil {
		return
	}
	switch e.Type {
	case "task_complete", "turn_complete":
		r.add(Step{Kind: Completed, Time: at})
	case "turn_aborted":
		r.add(Step{Kind: Interrupted, Time: at})
	case "error":
		r.add(Step{Kind: Failed, Time: at, Text: e.Message})
	case "thread_rolled_back":
		r.rollBack(e.Turns)
	case "token_count":
		if e.Info != nil && e.Info.Last.Total > 0 {
			s := Step{Kind: Usage, Time: at}
			s.Tokens.Input, s.Tokens.Cached, s.Tokens.Output = e.Info.Last.Input, e.Info.Last.Cached, e.Info.Last.Output
			s.Tokens.Reasoning, s.Tokens.Total = e.Info.Last.Reasoning, e.Info.Last.Total
			r.add(s)
		}
	case "item_completed":
		if i, ok := r.calls[e.Item.ID]; ok {
			r.conv.Steps[i].ExitCode = e.Item.ExitCode
			if e.Item.Type == "FileChange" {
				r.conv.Steps[i].Diff = changesDiff(e.Item.Changes)
			}
		}
	}
}

// rollBack takes back the last turns.
func (r *codexReader) rollBack(turns int) {
	for i := len(r.conv.Steps) - 1; i >= 0 && turns > 0; i-- {
		if r.conv.Steps[i].Kind != User {
			continue
		}
		if turns--; turns == 0 {
			r.conv.Steps = r.conv.Steps[:i]
		}
	}
}

// changesDiff makes a diff of what a patch changed, file by file.
func changesDiff(changes map[string]json.RawMessage) string {
	var b strings.Builder
	paths := make([]string, 0, len(changes))
	for path := range changes {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		var c struct {
			Type    string `json:"type"`
			Content string `json:"content"`
			Diff    string `json:"unified_diff"`
		}
		if json.Unmarshal(changes[path], &c) != nil {
			continue
		}
		from, to := path, path
		switch c.Type {
		case "add":
			from = os.DevNull
		case "delete":
			to = os.DevNull
		}
		b.WriteString("--- " + from + "\n+++ " + to + "\n")
		switch {
		case c.Diff != "":
			b.WriteString(strings.TrimSuffix(c.Diff, "\n") + "\n")
		case c.Type == "delete":
			b.WriteString(wholeHunk(c.Content, "-"))
		default:
			b.WriteString(wholeHunk(c.Content, "+"))
		}
	}
	return b.String()
}
