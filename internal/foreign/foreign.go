// Package foreign reads the conversations that other agents keep on this machine: Codex, Claude Code,
// opencode and Gemini CLI. [Home.List] says what is there, from the beginnings of the files;
// [Home.Read] reads one conversation as steps, of which package convert makes events of ours.
//
// Everything it reads was written by other programs, perhaps at this moment, perhaps by an attacker: files are
// opened for reading only, have to be regular files, and are read in bounded pieces. What is
// damaged is left out and reported as a loss; it never keeps the rest from being read.
package foreign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// An Agent is a program whose conversations can be read.
type Agent string

// The agents.
const (
	Codex    Agent = "codex"
	Claude   Agent = "claude"
	OpenCode Agent = "opencode"
	Gemini   Agent = "gemini"
)

// Agents are all of them, in the order in which they are listed.
var Agents = []Agent{Codex, Claude, OpenCode, Gemini}

// String names the agent for people.
func (a Agent) String() string {
	switch a {
	case Codex:
		return "Codex"
	case Claude:
		return "Claude Code"
	case OpenCode:
		return "opencode"
	case Gemini:
		return "Gemini CLI"
	}
	return string(a)
}

// A Session is what is known of a conversation without reading all of it.
type Session struct {
	Agent    Agent
	ID       string    // the agent's own name for it
	Path     string    // its file, or the database that it is in
	Title    string    // given by the user, or the first thing that they wrote
	Cwd      string    // the directory it worked in
	Model    string    // the last one known
	Version  string    // of the agent
	Branch   string    // of git, when it began
	Commit   string    // of git, when it began
	Parent   string    // of a subagent: the conversation that started it
	ForkOf   string    // the conversation that it is a copy of, up to some point
	Started  time.Time // zero if not known
	Modified time.Time
	Size     int64 // in bytes, of its files
	Archived bool
	Damaged  string // why its head cannot be read, if that is so

	files []string // all of its files, the newest last
}

// A Conversation is everything that was read of a session.
type Conversation struct {
	Session
	Steps    []Step
	Losses   []string // what could not be read or is missing, one sentence each
	Branches []string // other ends of the same session, which were abandoned; names for [Home.ReadBranch]
}

// A Kind says what a step is.
type Kind string

// The kinds of steps.
const (
	User        Kind = "user"        // a message that a person wrote
	Message     Kind = "message"     // a text of the model
	Thought     Kind = "thought"     // what the model thought, as far as it can be read
	Call        Kind = "call"        // a call of a tool
	Output      Kind = "output"      // its output
	Compaction  Kind = "compaction"  // the history was replaced by a summary
	Interrupted Kind = "interrupted" // the user stopped the turn
	Failed      Kind = "failed"      // the turn ended with an error
	Completed   Kind = "completed"   // the turn ended
	Usage       Kind = "usage"       // tokens of the response before it
	Unsent      Kind = "unsent"      // a message that the user wrote and the model never got
)

// A Step is one thing that happened in a conversation.
type Step struct {
	Kind    Kind
	Time    time.Time
	Text    string   // of messages, thoughts, outputs, summaries and errors
	Images  []string // data URLs, of a message or an output
	ID      string   // of a call, and of the call that an output answers
	Name    string   // of the tool
	Input   string   // of a call: a JSON object, or free text if Custom
	Custom  bool
	Bad     bool // the output is that of a call that failed
	Partial bool // the text ends where it was interrupted

	ExitCode *int          // of a command, if known
	Elapsed  time.Duration // of a call, if known
	Diff     string        // what the call changed in files
	Tokens   p.Usage       // of Usage
	Raw      p.Raw         // of a thought: how a service wants it back
	Child    string        // of a call: the session of the subagent that it started
}

// A Home is where an agent keeps its conversations.
type Home struct {
	Agent Agent
	Dir   string
	File  string // the file of one conversation, if only that is wanted
	// Scratch is a directory of ours in which databases are copied before they are read. It is made when
	// it is needed, and what is in it is removed again.
	Scratch string

	snap *snapshot // of opencode's database, if it was needed
}

// Close removes what was copied.
func (h *Home) Close() {
	if h.snap != nil {
		h.snap.close()
		h.snap = nil
	}
}

// FindHome returns where an agent keeps its conversations for the user whose environment this is. The error says
// where it was looked for.
func FindHome(a Agent, env func(string) string) (*Home, error) {
	home := env("HOME")
	var dir string
	switch a {
	case Codex:
		dir = cmp.Or(env("CODEX_HOME"), filepath.Join(home, ".codex"))
	case Claude:
		dir = cmp.Or(env("CLAUDE_CONFIG_DIR"), filepath.Join(home, ".claude"))
	case OpenCode:
		dir = filepath.Join(cmp.Or(env("XDG_DATA_HOME"), filepath.Join(home, ".local", "share")), "opencode")
	case Gemini:
		dir = filepath.Join(cmp.Or(env("GEMINI_CLI_HOME"), home), ".gemini")
	default:
		return nil, fmt.Errorf("unknown agent %q", string(a))
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("%s has no conversations here: there is no directory %s", a, dir)
	}
	return &Home{Agent: a, Dir: dir}, nil
}

// ErrNoSession is the answer to an id that no session has.
var ErrNoSession = errors.New("no such session")

// List returns the sessions of a home, the newest first. It reads only the beginnings of files.
func (h *Home) List(ctx context.Context) ([]Session, error) {
	if h.File != "" && h.Agent != OpenCode {
		s, err := h.listFile(ctx)
		return []Session{s}, err
	}
	var list []Session
	var err error
	switch h.Agent {
	case Codex:
		list, err = h.listCodex(ctx)
	case Claude:
		list, err = h.listClaude(ctx)
	case OpenCode:
		list, err = h.listOpenCode(ctx)
	case Gemini:
		list, err = h.listGemini(ctx)
	}
	slices.SortStableFunc(list, func(a, b Session) int { return b.Modified.Compare(a.Modified) })
	return list, err
}

// listFile returns the session that is in one file.
func (h *Home) listFile(ctx context.Context) (Session, error) {
	st, err := os.Stat(h.File)
	if err != nil {
		return Session{}, err
	}
	d := fs.FileInfoToDirEntry(st)
	var s Session
	switch h.Agent {
	case Codex:
		s = codexHead(ctx, h.File, d)
	case Claude:
		s, _ = claudeHead(ctx, h.File, d)
	case Gemini:
		s, _ = geminiHead(ctx, h.File, d)
	}
	return s, nil
}

// Read reads a session that List returned.
func (h *Home) Read(ctx context.Context, s Session) (Conversation, error) {
	return h.ReadBranch(ctx, s, "")
}

// ReadBranch reads another end of a session than the one that its agent would resume.
func (h *Home) ReadBranch(ctx context.Context, s Session, branch string) (Conversation, error) {
	if s.Damaged != "" && h.Agent != Codex {
		return Conversation{}, errors.New(s.Damaged)
	}
	read := map[Agent]func() (Conversation, error){
		Codex:    func() (Conversation, error) { return h.readCodex(ctx, s, branch) },
		Claude:   func() (Conversation, error) { return h.readClaude(ctx, s, branch) },
		OpenCode: func() (Conversation, error) { return h.readOpenCode(ctx, s) },
		Gemini:   func() (Conversation, error) { return h.readGemini(ctx, s) },
	}[h.Agent]
	if read == nil {
		return Conversation{}, fmt.Errorf("unknown agent %q", string(h.Agent))
	}
	c, err := read()
	c.leaveImagesOut()
	return c, err
}

// titleLength is how many characters of a message make a title.
const titleLength = 80

// Title makes a title of the first thing that a person wrote.
func Title(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > titleLength {
		return string(r[:titleLength-1]) + "…"
	}
	return text
}

// lose notes that something could not be read. Many losses of one kind are one line each up to a limit.
func (c *Conversation) lose(format string, args ...any) {
	const most = 20
	switch {
	case len(c.Losses) < most:
		c.Losses = append(c.Losses, fmt.Sprintf(format, args...))
	case len(c.Losses) == most:
		c.Losses = append(c.Losses, "more losses of these kinds are not listed")
	}
}

// parseTime reads the times that agents write.
func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return plausible(t)
}

// plausible returns the time in UTC, or zero if nothing that an agent did can have been then. Some cannot even be recorded.
func plausible(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 2000 || t.Year() > 2200 {
		return time.Time{}
	}
	return t
}
