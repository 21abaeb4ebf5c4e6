package foreign

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/foreign/lines"
)

// claudeLine is one line of a session: one block of a message, or a remark of the program.
type claudeLine struct {
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	UUID      string          `json:"uuid"`
	Parent    string          `json:"parentUuid"`
	Logical   string          `json:"logicalParentUuid"`
	Source    string          `json:"sourceToolAssistantUUID"` // of a result: the line of its call
	Session   string          `json:"sessionId"`
	Timestamp string          `json:"timestamp"`
	Cwd       string          `json:"cwd"`
	Branch    string          `json:"gitBranch"`
	Version   string          `json:"version"`
	Sidechain bool            `json:"isSidechain"`
	Meta      bool            `json:"isMeta"`
	Summary   bool            `json:"isCompactSummary"`
	APIError  bool            `json:"isApiErrorMessage"`
	Message   claudeMessage   `json:"message"`
	Result    json.RawMessage `json:"toolUseResult"`
	Title     string          `json:"customTitle"`
	AITitle   string          `json:"aiTitle"`
	Operation string          `json:"operation"` // of a queue-operation
	Content   json.RawMessage `json:"content"`   // of a queue-operation: the prompt
}

type claudeMessage struct {
	ID      string          `json:"id"`
	Role    string          `json:"role"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"`
	Usage   *claudeTokens   `json:"usage"`
}

type claudeTokens struct {
	Input  int64 `json:"input_tokens"`
	Write  int64 `json:"cache_creation_input_tokens"`
	Read   int64 `json:"cache_read_input_tokens"`
	Output int64 `json:"output_tokens"`
}

// listClaude lists the sessions of all projects, and the subagents below them.
func (h *Home) listClaude(ctx context.Context) ([]Session, error) {
	var list []Session
	root := filepath.Join(h.Dir, "projects")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return ctx.Err()
		}
		parent := ""
		if rel, _ := filepath.Rel(root, path); strings.Count(rel, string(filepath.Separator)) > 1 {
			dir := filepath.Dir(path)
			if filepath.Base(dir) != "subagents" {
				return ctx.Err()
			}
			parent = filepath.Base(filepath.Dir(dir))
		}
		if s, ok := claudeHead(ctx, path, d); ok {
			s.Parent = parent
			list = append(list, s)
		}
		return ctx.Err()
	})
	return list, err
}

// claudeHead reads the beginning of a session. It reports false for a file that holds none.
func claudeHead(ctx context.Context, path string, d fs.DirEntry) (Session, bool) {
	s := Session{Agent: Claude, Path: path, ID: strings.TrimSuffix(d.Name(), ".jsonl"), files: []string{path}}
	if st, err := d.Info(); err == nil {
		s.Modified, s.Size = plausible(st.ModTime()), st.Size()
	}
	known := false
	err := lines.Each(ctx, path, lines.HeadBytes, func(l lines.Line) error {
		var c claudeLine
		if json.Unmarshal(l.Data, &c) != nil {
			return nil
		}
		known = known || c.UUID != "" || c.Session != ""
		s.takeHead(c)
		if s.Title == "" {
			for _, step := range c.steps() {
				if step.Kind == User {
					s.Title = Title(step.Text)
				}
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
	return s, known || err != nil
}

func (s *Session) takeHead(c claudeLine) {
	s.Cwd = cmp.Or(s.Cwd, c.Cwd)
	s.Branch = cmp.Or(s.Branch, c.Branch)
	s.Version = cmp.Or(c.Version, s.Version)
	if at := parseTime(c.Timestamp); s.Started.IsZero() {
		s.Started = at
	}
	if c.Message.Model != "" && c.Message.Model != syntheticModel {
		s.Model = c.Message.Model
	}
}

// syntheticModel is named in messages that the program wrote in the model's place.
const syntheticModel = "<synthetic>"

// A claudeTree is the lines of a session, which form a tree: each names the one before it.
type claudeTree struct {
	lines  []claudeLine
	byUUID map[string]int
	queued map[string]time.Time // prompts that wait, until they are sent
	order  []string             // of queued
	title  string
}

func (h *Home) readClaude(ctx context.Context, s Session, branch string) (Conversation, error) {
	conv := Conversation{Session: s}
	t := &claudeTree{byUUID: map[string]int{}, queued: map[string]time.Time{}}
	err := lines.Each(ctx, s.Path, lines.MaxText, func(l lines.Line) error {
		var c claudeLine
		if l.Bad == "" && json.Unmarshal(l.Data, &c) != nil {
			l.Bad = "it is not whole"
		}
		if l.Bad != "" {
			conv.lose("line %d was left out: %s", l.Number, l.Bad)
			return nil
		}
		conv.takeHead(c)
		t.take(c, &conv)
		return nil
	})
	if err != nil {
		return conv, err
	}
	conv.Title = cmp.Or(t.title, conv.Title)
	leaf := t.leaf(branch)
	taken := t.path(leaf, &conv)
	conv.Branches = t.branches(taken)
	t.emit(taken, &conv)
	return conv, nil
}

// take adds a line to the tree.
func (t *claudeTree) take(c claudeLine, conv *Conversation) {
	switch c.Type {
	case "custom-title", "ai-title":
		t.title = Title(cmp.Or(c.Title, c.AITitle))
	case "queue-operation":
		t.queue(c)
	}
	if c.UUID == "" {
		return
	}
	if _, ok := t.byUUID[c.UUID]; ok {
		conv.lose("a line repeats an earlier one (%s)", c.UUID)
		return
	}
	t.byUUID[c.UUID] = len(t.lines)
	t.lines = append(t.lines, c)
}

// queue follows the prompts that wait: one that was never sent is only in the queue.
func (t *claudeTree) queue(c claudeLine) {
	var text string
	if json.Unmarshal(c.Content, &text) != nil || text == "" {
		return
	}
	if c.Operation != "enqueue" {
		delete(t.queued, text)
		return
	}
	if _, ok := t.queued[text]; !ok {
		t.order = append(t.order, text)
	}
	t.queued[text] = parseTime(c.Timestamp)
}

// leaf returns the line at the end of the conversation: the newest, or the one that a branch names; -1 if there is none.
func (t *claudeTree) leaf(branch string) int {
	if i, ok := t.byUUID[branch]; ok {
		return i
	}
	for i := len(t.lines) - 1; i >= 0; i-- {
		if !t.lines[i].Sidechain || t.lines[0].Sidechain {
			return i
		}
	}
	return -1
}

// path returns which lines belong to the conversation that ends with a line. The lines of one answer, and the
// results of its calls, belong together although they have several parents.
func (t *claudeTree) path(leaf int, conv *Conversation) []bool {
	taken := make([]bool, len(t.lines))
	messages := map[string]bool{}
	for i := leaf; i >= 0; {
		if taken[i] {
			break // a circle
		}
		taken[i] = true
		messages[t.lines[i].Message.ID] = true
		i = t.before(i, conv)
	}
	delete(messages, "")
	uuids := map[string]bool{}
	for i, l := range t.lines {
		if l.Type == "assistant" && messages[l.Message.ID] && i <= leaf {
			taken[i] = true
		}
		if taken[i] {
			uuids[l.UUID] = true
		}
	}
	for i, l := range t.lines {
		if l.Type == "user" && uuids[l.Source] && len(l.Result)+len(l.Message.Content) > 0 && l.isResult() {
			taken[i] = true
		}
	}
	return taken
}

// before returns the line that a line follows, -1 for the first.
func (t *claudeTree) before(i int, conv *Conversation) int {
	l := t.lines[i]
	parent := cmp.Or(l.Parent, l.Logical)
	if parent == "" {
		return -1
	}
	j, ok := t.byUUID[parent]
	if !ok {
		conv.lose("the line before %s is missing", l.UUID)
		return i - 1 // the line above is the best guess
	}
	return j
}

// branches returns the ends of what was abandoned: messages of the user that no taken line follows.
func (t *claudeTree) branches(taken []bool) []string {
	parents := map[string]bool{}
	for _, l := range t.lines {
		parents[l.Parent] = true
	}
	var ends []string
	for i, l := range t.lines {
		if !taken[i] && !parents[l.UUID] && !l.Sidechain && (l.Type == "user" || l.Type == "assistant") {
			ends = append(ends, l.UUID)
		}
	}
	return ends
}

// emit makes steps of the taken lines, in the order of the file.
func (t *claudeTree) emit(taken []bool, conv *Conversation) {
	for i, l := range t.lines {
		if !taken[i] {
			continue
		}
		for _, s := range l.steps() {
			if s.Kind == User {
				delete(t.queued, s.Text)
				if conv.Title == "" {
					conv.Title = Title(s.Text)
				}
			}
			if n := len(conv.Steps); s.Kind == Interrupted && n > 0 && conv.Steps[n-1].Kind == Message {
				conv.Steps[n-1].Partial = true
			}
			conv.Steps = append(conv.Steps, s)
		}
		if l.Message.Usage != nil && t.endsMessage(i) {
			conv.Steps = append(conv.Steps, l.Message.Usage.step(parseTime(l.Timestamp)))
		}
	}
	for _, text := range t.order {
		if at, ok := t.queued[text]; ok {
			conv.Steps = append(conv.Steps, Step{Kind: Unsent, Time: at, Text: text})
		}
	}
}

// endsMessage reports whether a line is the last of its answer.
func (t *claudeTree) endsMessage(i int) bool {
	id := t.lines[i].Message.ID
	for _, l := range t.lines[i+1:] {
		if l.Message.ID == id {
			return false
		}
		if l.Type == "assistant" {
			return true
		}
	}
	return true
}

func (u claudeTokens) step(at time.Time) Step {
	s := Step{Kind: Usage, Time: at}
	s.Tokens.Input, s.Tokens.Cached, s.Tokens.CacheWrite = u.Input+u.Read+u.Write, u.Read, u.Write
	s.Tokens.Output, s.Tokens.Total = u.Output, u.Input+u.Read+u.Write+u.Output
	return s
}
