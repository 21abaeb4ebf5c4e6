package foreign

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/foreign/lines"
	"github.com/fermata-agent/fermata/internal/regular"
)

// geminiLine is one line of a session: its head, a message, or a change.
type geminiLine struct {
	Session string           `json:"sessionId"`
	Start   string           `json:"startTime"`
	Kind    string           `json:"kind"`
	Rewind  string           `json:"$rewindTo"`
	Set     *geminiSet       `json:"$set"`
	All     []*geminiMessage `json:"messages"` // of a document in one piece, as older versions wrote it
	geminiMessage
}

type geminiSet struct {
	Messages []*geminiMessage `json:"messages"`
}

type geminiMessage struct {
	ID        string          `json:"id"`
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	Content   json.RawMessage `json:"content"`
	Model     string          `json:"model"`
	Thoughts  []struct {
		Subject     string `json:"subject"`
		Description string `json:"description"`
	} `json:"thoughts"`
	Tokens *struct {
		Input    int64 `json:"input"`
		Output   int64 `json:"output"`
		Cached   int64 `json:"cached"`
		Thoughts int64 `json:"thoughts"`
		Total    int64 `json:"total"`
	} `json:"tokens"`
	Calls []geminiCall `json:"toolCalls"`
}

type geminiCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args"`
	Status    string          `json:"status"`
	Timestamp string          `json:"timestamp"`
	Result    []geminiPart    `json:"result"`
	Display   json.RawMessage `json:"resultDisplay"`
}

type geminiPart struct {
	Text       string `json:"text"`
	InlineData *struct {
		MIME string `json:"mimeType"`
		Data string `json:"data"`
	} `json:"inlineData"`
	Response *struct {
		Response map[string]json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

// listGemini lists the sessions. Resuming leaves several files with one session id, of which those without messages
// are dropped.
func (h *Home) listGemini(ctx context.Context) ([]Session, error) {
	roots := h.geminiRoots()
	byID := map[string]int{}
	var list []Session
	dir := filepath.Join(h.Dir, "tmp")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		parts := strings.Split(rel, string(filepath.Separator))
		if err != nil || d.IsDir() || len(parts) < 3 || parts[1] != "chats" || !slices.Contains([]string{".jsonl", ".json"}, filepath.Ext(path)) {
			return ctx.Err()
		}
		s, any := geminiHead(ctx, path, d)
		s.Cwd = roots(parts[0])
		if len(parts) == 4 {
			s.Parent = parts[2]
		}
		switch i, ok := byID[s.ID]; {
		case !any && s.Damaged == "":
		case ok && list[i].Size >= s.Size:
			list[i].Modified = later(list[i].Modified, s.Modified)
		case ok:
			s.Modified = later(list[i].Modified, s.Modified)
			list[i] = s
		default:
			byID[s.ID] = len(list)
			list = append(list, s)
		}
		return ctx.Err()
	})
	return list, err
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// geminiRoots returns a function that finds the directory of a project by the name of its folder.
func (h *Home) geminiRoots() func(slug string) string {
	var file struct {
		Projects map[string]string `json:"projects"`
	}
	if f, err := regular.Open(filepath.Join(h.Dir, "projects.json")); err == nil {
		_ = json.NewDecoder(f).Decode(&file) // the folder may know it as well
		f.Close()
	}
	bySlug := map[string]string{}
	for path, slug := range file.Projects {
		bySlug[slug] = path
	}
	return func(slug string) string {
		name := filepath.Join(h.Dir, "tmp", slug, ".project_root")
		if root, err := regular.ReadFile(name); err == nil && len(root) < 1<<16 {
			return strings.TrimSpace(string(root))
		}
		return bySlug[slug]
	}
}

// geminiHead reads the beginning of a session, and reports whether a person wrote anything.
func geminiHead(ctx context.Context, path string, d fs.DirEntry) (Session, bool) {
	name := strings.TrimSuffix(strings.TrimSuffix(d.Name(), ".jsonl"), ".json")
	s := Session{Agent: Gemini, Path: path, ID: name, files: []string{path}}
	if st, err := d.Info(); err == nil {
		s.Modified, s.Size = plausible(st.ModTime()), st.Size()
	}
	limit := int64(lines.HeadBytes)
	if filepath.Ext(path) == ".json" {
		limit = lines.MaxLine
	}
	log := &geminiLog{byID: map[string]int{}}
	err := log.read(ctx, path, limit, nil)
	s.ID, s.Started = cmp.Or(log.session, s.ID), log.start
	for _, m := range log.messages {
		s.Model = cmp.Or(m.Model, s.Model)
		for _, step := range m.steps() {
			if step.Kind == User && s.Title == "" {
				s.Title = Title(step.Text)
			}
		}
	}
	if err != nil {
		s.Damaged = err.Error()
	}
	return s, s.Title != ""
}

// A geminiLog is a session with all changes up to a line made.
type geminiLog struct {
	session  string
	start    time.Time
	messages []*geminiMessage
	byID     map[string]int
}

// read makes the changes of a file. What cannot be read is passed to lose, if that is set.
func (g *geminiLog) read(ctx context.Context, path string, limit int64, lose func(format string, args ...any)) error {
	if filepath.Ext(path) == ".json" {
		return g.readDocument(path, limit)
	}
	return lines.Each(ctx, path, limit, func(l lines.Line) error {
		var c geminiLine
		if l.Bad == "" && json.Unmarshal(l.Data, &c) != nil {
			l.Bad = "it is not whole"
		}
		if l.Bad != "" {
			if lose != nil {
				lose("line %d was left out: %s", l.Number, l.Bad)
			}
			return nil
		}
		g.take(c)
		return nil
	})
}

// readDocument reads a session that is one JSON document.
func (g *geminiLog) readDocument(path string, limit int64) error {
	f, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var c geminiLine
	if err := json.NewDecoder(io.LimitReader(f, limit)).Decode(&c); err != nil {
		return err
	}
	g.take(c)
	g.setAll(c.All)
	return nil
}

func (g *geminiLog) take(c geminiLine) {
	switch {
	case c.Rewind != "":
		if i, ok := g.byID[c.Rewind]; ok {
			g.setAll(g.messages[:i])
		}
	case c.Set != nil:
		if c.Set.Messages != nil {
			g.setAll(c.Set.Messages)
		}
	case c.ID != "" && c.Type != "":
		m := c.geminiMessage
		if i, ok := g.byID[m.ID]; ok {
			g.messages[i] = &m
			return
		}
		g.byID[m.ID] = len(g.messages)
		g.messages = append(g.messages, &m)
	case c.Session != "":
		g.session, g.start = c.Session, parseTime(c.Start)
	}
}

func (g *geminiLog) setAll(list []*geminiMessage) {
	g.messages, g.byID = nil, map[string]int{}
	for _, m := range list {
		if m != nil {
			g.byID[m.ID] = len(g.messages)
			g.messages = append(g.messages, m)
		}
	}
}

func (h *Home) readGemini(ctx context.Context, s Session) (Conversation, error) {
	conv := Conversation{Session: s}
	log := &geminiLog{byID: map[string]int{}}
	if err := log.read(ctx, s.Path, lines.MaxText, conv.lose); err != nil {
		return conv, err
	}
	for _, m := range log.messages {
		conv.Model = cmp.Or(m.Model, conv.Model)
		conv.Steps = append(conv.Steps, m.steps()...)
	}
	if conv.awaitsAnswer() {
		conv.lose("the last turn has no answer: Gemini CLI records a call when it has finished, so one may have run that is not here")
	}
	return conv, nil
}

// awaitsAnswer reports whether the conversation ends where the model had to answer.
func (c *Conversation) awaitsAnswer() bool {
	for _, s := range slices.Backward(c.Steps) {
		if s.Kind != Usage {
			return s.Kind == User || s.Kind == Output
		}
	}
	return false
}

// geminiInserted are the beginnings of messages in the user's role that the program wrote.
var geminiInserted = []string{"<session_context>", "<system-reminder>", "This is the Gemini CLI. We are setting up the context"}

// steps makes steps of a message.
func (m *geminiMessage) steps() []Step {
	at := parseTime(m.Timestamp)
	switch m.Type {
	case "user":
		return m.prompt(at)
	case "gemini":
		return m.answer(at)
	case "error":
		return []Step{{Kind: Failed, Time: at, Text: m.text()}}
	}
	return nil
}

// parts reads content: a string, one part, or a list of parts.
func (m *geminiMessage) parts() []geminiPart {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return []geminiPart{{Text: text}}
	}
	var parts []geminiPart
	_ = json.Unmarshal(m.Content, &parts) // what cannot be read holds none
	return parts
}

func (m *geminiMessage) text() string {
	var texts []string
	for _, part := range m.parts() {
		if part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// prompt makes a step of a user's message. Results of calls are in the answers, too, and left out here.
func (m *geminiMessage) prompt(at time.Time) []Step {
	s := Step{Kind: User, Time: at}
	var texts []string
	for _, part := range m.parts() {
		switch {
		case part.Response != nil:
			return nil
		case part.InlineData != nil:
			s.Images = append(s.Images, "data:"+part.InlineData.MIME+";base64,"+part.InlineData.Data)
		case part.Text != "" && !hasAnyPrefix(strings.TrimSpace(part.Text), geminiInserted):
			texts = append(texts, part.Text)
		}
	}
	if s.Text = strings.Join(texts, "\n"); s.Text == "" && len(s.Images) == 0 {
		return nil
	}
	return []Step{s}
}

func (m *geminiMessage) answer(at time.Time) []Step {
	var steps []Step
	for _, t := range m.Thoughts {
		text := strings.TrimSpace(t.Description)
		if t.Subject != "" {
			text = "**" + t.Subject + "**\n\n" + text
		}
		steps = append(steps, Step{Kind: Thought, Time: at, Text: text})
	}
	if text := m.text(); text != "" {
		steps = append(steps, Step{Kind: Message, Time: at, Text: text})
	}
	for _, c := range m.Calls {
		steps = append(steps, c.steps(at)...)
	}
	if t := m.Tokens; t != nil {
		u := Step{Kind: Usage, Time: at}
		u.Tokens.Input, u.Tokens.Cached, u.Tokens.Output = t.Input, t.Cached, t.Output+t.Thoughts
		u.Tokens.Reasoning, u.Tokens.Total = t.Thoughts, t.Total
		steps = append(steps, u)
	}
	return steps
}

func (c geminiCall) steps(at time.Time) []Step {
	call := Step{Kind: Call, Time: at, ID: c.ID, Name: c.Name, Input: string(c.Args)}
	if c.Status == "" || c.Result == nil && c.Display == nil {
		return []Step{call}
	}
	out := Step{Kind: Output, Time: cmp.Or(parseTime(c.Timestamp), at), ID: c.ID, Bad: c.Status != "success"}
	var texts []string
	for _, part := range c.Result {
		switch {
		case part.InlineData != nil:
			out.Images = append(out.Images, "data:"+part.InlineData.MIME+";base64,"+part.InlineData.Data)
		case part.Response != nil:
			texts = append(texts, responseText(part.Response.Response))
		case part.Text != "":
			texts = append(texts, part.Text)
		}
	}
	out.Text = strings.Join(texts, "\n")
	var display struct {
		Diff string `json:"fileDiff"`
	}
	if json.Unmarshal(c.Display, &display) == nil { // a string for most tools
		out.Diff = display.Diff
	}
	return []Step{call, out}
}

// responseText is the text of a result: its output or its error, else all of it.
func responseText(response map[string]json.RawMessage) string {
	for _, name := range []string{"output", "error", "result"} {
		var text string
		if json.Unmarshal(response[name], &text) == nil {
			return text
		}
	}
	all, _ := json.Marshal(response) // it was read from JSON
	return string(all)
}
