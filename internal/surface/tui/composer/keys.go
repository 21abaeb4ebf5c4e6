package composer

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	p "github.com/fermata-agent/fermata/protocol"
)

// Init returns the command that loads the history.
func (c *Composer) Init() tea.Cmd { return c.load() }

// Update takes a key, a paste or an answer to one of its own commands. It costs
// nothing to give it every message. While a turn runs Enter steers, Tab and
// Alt-Enter queue, Ctrl-S replaces.
func (c *Composer) Update(msg tea.Msg) (Action, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		if c.focused {
			return c.key(msg)
		}
	case tea.PasteMsg:
		if c.focused {
			c.paste(msg.Content)
			return Used{}, nil
		}
	case loaded:
		if msg.to == c {
			return c.loaded(msg), nil
		}
	case added:
		if (msg.to == c || msg.to == nil) && msg.err != nil {
			return Failed{msg.err}, nil
		}
	case found:
		if msg.to == c {
			c.found(msg)
			return Used{}, nil
		}
	}
	return nil, nil
}

// key finds out whose key it is: the search, the popup, the composer's own, or
// the editor's.
func (c *Composer) key(k tea.KeyPressMsg) (Action, tea.Cmd) {
	name := k.Keystroke()
	if c.search != nil {
		if c.searchKey(name, k) {
			return Used{}, nil
		}
		c.takeMatch() // the key is meant for the text that was found
	}
	if do, ok := popupKeys[name]; ok && c.popup.open() {
		return do(c)
	}
	if c.opts.Vim {
		before := c.buf.Revision()
		if c.vimKey(name, k) {
			c.past.leave()
			return Used{}, c.refresh(c.buf.Revision() != before)
		}
	}
	if do, ok := ownKeys[name]; ok {
		return do(c)
	}
	return c.edit(name, k)
}

// vimKey takes a key that is vim's. With nothing written Esc is the application's, which
// interrupts; and what begins a command or a name of a file is written.
func (c *Composer) vimKey(name string, k tea.KeyPressMsg) bool {
	switch {
	case name == "esc":
		return (!c.buf.Empty() || c.vim.Normal) && c.vim.Escape(&c.buf)
	case !c.vim.Normal || k.Text == "":
		return false
	case c.buf.Empty() && strings.Contains("/!@", k.Text):
		c.vim.Insert()
		return false
	}
	for _, r := range k.Text {
		c.vim.Key(&c.buf, string(r))
	}
	return true
}

// edit gives a key to the editor and looks after what depends on the text.
func (c *Composer) edit(name string, k tea.KeyPressMsg) (Action, tea.Cmd) {
	if name == "ctrl+d" && c.buf.Empty() {
		return nil, nil // the end of input is the application's business
	}
	before := c.buf.Revision()
	if !c.buf.Key(k) {
		return nil, nil
	}
	c.past.leave()
	return Used{}, c.refresh(c.buf.Revision() != before)
}

// ownKeys are the keys that mean the same whatever is written.
var ownKeys map[string]func(*Composer) (Action, tea.Cmd)

func init() {
	newline := func(c *Composer) (Action, tea.Cmd) {
		c.past.leave()
		c.buf.Type("\n")
		return Used{}, c.refresh(true)
	}
	ownKeys = map[string]func(*Composer) (Action, tea.Cmd){
		"enter":       func(c *Composer) (Action, tea.Cmd) { return c.send(p.Steer) },
		"ctrl+s":      func(c *Composer) (Action, tea.Cmd) { return c.send(p.Replace) },
		"tab":         func(c *Composer) (Action, tea.Cmd) { return c.queue(nil) },
		"alt+enter":   func(c *Composer) (Action, tea.Cmd) { return c.queue(newline) },
		"shift+enter": newline,
		"ctrl+j":      newline,
		"ctrl+g":      func(*Composer) (Action, tea.Cmd) { return Editor{}, nil },
		"ctrl+r":      (*Composer).startSearch,
		"up":          (*Composer).up,
		"ctrl+p":      (*Composer).up,
		"down":        (*Composer).down,
		"ctrl+n":      (*Composer).down,
	}
}

// queue sends behind the running turn. Without one there is nothing to queue
// behind: then the key does what it does otherwise.
func (c *Composer) queue(otherwise func(*Composer) (Action, tea.Cmd)) (Action, tea.Cmd) {
	switch {
	case c.busy:
		return c.send(p.Queue)
	case otherwise != nil:
		return otherwise(c)
	}
	return nil, nil
}

// send turns what is written into the action that it stands for.
func (c *Composer) send(mode p.WhenBusy) (Action, tea.Cmd) {
	raw := c.buf.Text()
	text := strings.TrimRight(c.lasting(raw), " \t\n")
	if strings.TrimSpace(text) == "" {
		return Used{}, nil
	}
	if line, ok := strings.CutPrefix(text, "!"); ok {
		if line = strings.TrimSpace(line); line == "" {
			return Used{}, nil
		}
		return Shell{line}, c.sent(text)
	}
	if name, args, ok := slash(text); ok {
		if !c.knows(name) {
			return Unknown{name}, nil
		}
		return Slash{name, args}, c.sent(text)
	}
	shown, images := c.message(raw)
	return Submit{shown, images, mode}, c.sent(text)
}

// sent empties the composer after its text was taken, and remembers it.
func (c *Composer) sent(text string) tea.Cmd {
	c.buf.Reset()
	c.vim.Insert()
	c.closePopup()
	c.popup.closed = token{}
	return c.remember(text)
}

// slash splits a command from its arguments. A path is no command.
func slash(text string) (name, args string, ok bool) {
	rest, ok := strings.CutPrefix(text, "/")
	if !ok {
		return "", "", false
	}
	if i := strings.IndexAny(rest, " \t\n"); i >= 0 {
		rest, args = rest[:i], strings.TrimSpace(rest[i:])
	}
	odd := func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}
	name = strings.ToLower(rest)
	return name, args, strings.IndexFunc(name, odd) < 0
}

func (c *Composer) knows(name string) bool {
	for _, k := range c.allCommands() {
		if k.Name == name {
			return true
		}
	}
	return false
}
