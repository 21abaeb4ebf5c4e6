package composer

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/edit"
)

// popupLines is how many proposals are seen at once.
const popupLines = 8

// token is the word under the cursor that can be completed.
type token struct {
	kind  byte // '/' or '@'; 0 for none
	from  edit.Pos
	typed string // behind the sign
}

func (t token) same(o token) bool { return t.kind == o.kind && t.from == o.from }

// proposal is one line of the popup.
type proposal struct {
	name string // as it is written into the text
	args string // of a command
	help string
}

// popup is the list of proposals for a token.
type popup struct {
	token   token
	closed  token // the token for which Esc was pressed
	list    []proposal
	rows    draw.List // which of them is selected
	pending bool      // files are still looked for
	search  int       // the number of the last search for files
	cancel  context.CancelFunc
}

func (u *popup) open() bool { return u.token.kind != 0 && (len(u.list) > 0 || u.pending) }

func (c *Composer) closePopup() {
	u := &c.popup
	if u.cancel != nil {
		u.cancel()
	}
	*u = popup{search: u.search, closed: u.closed}
}

// refresh looks at the word under the cursor after a key. Only a change of the
// text opens the popup: a user who moves through a text wants to move on.
func (c *Composer) refresh(changed bool) tea.Cmd {
	t := c.token()
	u := &c.popup
	if t.kind == 0 || !t.same(u.closed) {
		u.closed = token{}
	}
	if t.kind == 0 || t.same(u.closed) || !changed && !t.same(u.token) {
		c.closePopup()
		return nil
	}
	if t == u.token {
		return nil
	}
	if !t.same(u.token) {
		c.closePopup()
	}
	u.token, u.rows = t, draw.List{}
	if t.kind == '/' {
		u.list = c.commands(t.typed)
		return nil
	}
	return c.find(t.typed)
}

// token returns the word that the cursor is at the end or in the middle of.
func (c *Composer) token() token {
	cur := c.buf.Cursor()
	text := c.buf.Line(cur.Line)[:cur.Off]
	start := strings.LastIndexAny(text, " \t") + 1
	switch {
	case start == len(text):
		return token{}
	case text[start] == '@' && c.opts.Files != nil:
		return token{'@', edit.Pos{Line: cur.Line, Off: start}, text[start+1:]}
	case text[start] == '/' && start == 0 && cur.Line == 0 && !strings.Contains(text[1:], "/"):
		return token{'/', edit.Pos{}, text[1:]}
	}
	return token{}
}

// commands returns the commands that fit: first those that begin with what was
// typed, then those that contain it or have its letters in order.
func (c *Composer) commands(typed string) []proposal {
	typed = strings.ToLower(typed)
	ranks := make([][]proposal, 3)
	for _, k := range c.allCommands() {
		rank := -1
		switch {
		case k.Hidden:
		case strings.HasPrefix(k.Name, typed):
			rank = 0
		case strings.Contains(k.Name, typed):
			rank = 1
		case inOrder(k.Name, typed):
			rank = 2
		}
		if rank >= 0 {
			ranks[rank] = append(ranks[rank], proposal{k.Name, k.Args, k.Help})
		}
	}
	return append(append(ranks[0], ranks[1]...), ranks[2]...)
}

// allCommands are those that are known now.
func (c *Composer) allCommands() []Command {
	if c.opts.MoreCommands == nil {
		return c.opts.Commands
	}
	return slices.Concat(c.opts.Commands, c.opts.MoreCommands())
}

// inOrder reports whether all letters are in s in their order.
func inOrder(s, letters string) bool {
	for _, r := range letters {
		i := strings.IndexRune(s, r)
		if i < 0 {
			return false
		}
		s = s[i+len(string(r)):]
	}
	return true
}

// found is the answer to a search for files.
type found struct {
	to     *Composer
	search int
	paths  []string
}

// find looks for files. What the last search found stays until the answer is
// there, as far as it fits what is typed now.
func (c *Composer) find(typed string) tea.Cmd {
	u := &c.popup
	if u.cancel != nil {
		u.cancel()
	}
	kept := u.list[:0:0]
	for _, pr := range u.list {
		if inOrder(strings.ToLower(pr.name), strings.ToLower(typed)) {
			kept = append(kept, pr)
		}
	}
	u.list = kept
	u.pending = true
	u.search++
	ctx, cancel := context.WithCancel(c.opts.Context)
	u.cancel = cancel
	n, files := u.search, c.opts.Files
	return func() tea.Msg {
		defer cancel()
		return found{c, n, files(ctx, typed)}
	}
}

func (c *Composer) found(msg found) {
	u := &c.popup
	if msg.search != u.search || u.token.kind != '@' {
		return
	}
	u.pending = false
	u.list = make([]proposal, 0, len(msg.paths))
	for _, path := range msg.paths {
		u.list = append(u.list, proposal{name: edit.Clean(path)})
	}
	u.rows = draw.List{}
}

// popupKeys are the keys of an open popup.
var popupKeys map[string]func(*Composer) (Action, tea.Cmd)

func init() {
	move := func(n int) func(*Composer) (Action, tea.Cmd) {
		return func(c *Composer) (Action, tea.Cmd) {
			c.popup.rows.Step(n, len(c.popup.list))
			return Used{}, nil
		}
	}
	popupKeys = map[string]func(*Composer) (Action, tea.Cmd){
		"up":     move(-1),
		"ctrl+p": move(-1),
		"down":   move(1),
		"ctrl+n": move(1),
		"tab":    (*Composer).complete,
		"enter":  (*Composer).choose,
		"esc": func(c *Composer) (Action, tea.Cmd) {
			c.popup.closed = c.popup.token
			c.closePopup()
			return Used{}, nil
		},
	}
}

// complete writes the proposal into the text.
func (c *Composer) complete() (Action, tea.Cmd) {
	u := &c.popup
	if len(u.list) == 0 {
		return Used{}, nil
	}
	pr, t := u.list[u.rows.At], u.token
	text := "/" + pr.name
	if t.kind == '@' {
		text = pr.name
		if strings.ContainsAny(text, " \t") {
			text = `"` + text + `"`
		}
	}
	if t.kind == '@' || pr.args != "" {
		text += " "
	}
	c.buf.Replace(t.from, c.wordEnd(), text)
	c.closePopup()
	c.popup.closed = c.token() // it is complete: do not offer it again
	return Used{}, nil
}

// wordEnd returns the end of the word that the cursor is in.
func (c *Composer) wordEnd() edit.Pos {
	cur := c.buf.Cursor()
	rest := c.buf.Line(cur.Line)[cur.Off:]
	if i := strings.IndexAny(rest, " \t"); i >= 0 {
		rest = rest[:i]
	}
	cur.Off += len(rest)
	return cur
}

// choose is Enter: a file is written into the text, a command that needs no more
// words is done at once.
func (c *Composer) choose() (Action, tea.Cmd) {
	u := &c.popup
	switch {
	case len(u.list) == 0 || u.token.kind == '/' && c.knows(u.token.typed):
		return ownKeys["enter"](c)
	case u.token.kind == '/' && u.list[u.rows.At].args == "":
		c.complete()
		return ownKeys["enter"](c)
	}
	return c.complete()
}
