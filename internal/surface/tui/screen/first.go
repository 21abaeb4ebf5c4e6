package screen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/terminal"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// FirstOptions configure the screen of the first run.
type FirstOptions struct {
	Why    string     // what is missing; empty if nothing was ever set up
	Offers []KeyOffer // services that can be used
	// Probe says whether a model server on this machine answers, and what it has.
	// It is called from a command.
	Probe func(context.Context) (string, bool)

	In          io.Reader // the terminal's keys
	Out         io.Writer // the terminal
	Env         []string  // of the process
	Color, Dark bool      // as in theme.Options
}

// A KeyOffer is a service that needs a key.
type KeyOffer struct {
	Provider string // its name
	Variable string // where the key is looked for
}

// A FirstChoice is what the person chose: nothing if Provider is empty.
type FirstChoice struct {
	Provider string // its name
	Variable string // where its key would be looked for
	Key      string // what was entered
}

// RunFirst asks which model to use. A key that is entered is returned, and saved nowhere: the caller
// asks whether to.
func RunFirst(ctx context.Context, o FirstOptions) (FirstChoice, error) {
	m := &firstRun{o: o, ctx: ctx, theme: theme.New(theme.Options{Dark: o.Dark, Color: o.Color}), width: 80, height: 24}
	err := terminal.New(ctx, m, terminal.Options{In: o.In, Out: o.Out, Env: o.Env}).Run()
	if !errors.Is(err, terminal.ErrPanic) && ctx.Err() != nil {
		return FirstChoice{}, context.Cause(ctx)
	}
	return m.chosen, err
}

// A firstRun is the program that shows the screen of the first run.
type firstRun struct {
	o             FirstOptions
	ctx           context.Context
	theme         *theme.Theme
	width, height int
	list          draw.List // of what can be chosen
	local         string    // what the local server has
	answers       bool
	asked         bool // the local server was
	key           *keyEntry
	note          string
	chosen        FirstChoice
}

// A keyEntry is a key that is being entered.
type keyEntry struct {
	offer KeyOffer
	text  []rune
}

type probed struct {
	has string
	ok  bool
}

func (f *firstRun) Init() tea.Cmd { return tea.Batch(tea.Raw(ansi.RequestBackgroundColor), f.probe()) }

func (f *firstRun) probe() tea.Cmd {
	ctx, probe := f.ctx, f.o.Probe
	if probe == nil {
		return nil
	}
	return func() tea.Msg {
		has, ok := probe(ctx)
		return probed{has, ok}
	}
}

func (f *firstRun) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		f.width, f.height = max(1, msg.Width), max(1, msg.Height)
	case tea.BackgroundColorMsg:
		f.theme = theme.New(theme.Options{Dark: msg.IsDark(), Color: f.o.Color})
	case probed:
		f.local, f.answers, f.asked = msg.has, msg.ok, true
	case tea.PasteMsg:
		if f.key != nil {
			f.key.text = append(f.key.text, []rune(strings.TrimSpace(msg.Content))...)
		}
	case tea.KeyPressMsg:
		if f.key != nil {
			return f, f.typeKey(msg)
		}
		return f, f.press(msg)
	}
	return f, nil
}

// rows are the keys and the local server, the demo, and the way out.
func (f *firstRun) rows() int { return len(f.o.Offers) + 3 }

func (f *firstRun) press(key tea.KeyPressMsg) tea.Cmd {
	f.note = ""
	switch k := key.String(); k {
	case "ctrl+c", "ctrl+d", "esc", "q":
		return tea.Quit
	case "ctrl+l":
		return terminal.ClearScreen
	case "up", "k":
		f.list.Step(-1, f.rows())
	case "down", "j", "tab":
		f.list.Step(1, f.rows())
	case "enter":
		return f.choose(f.list.At)
	case "r":
		f.asked = false
		return f.probe()
	default:
		if len(k) == 1 && k[0] >= '1' && int(k[0]-'1') < f.rows() {
			f.list.At = int(k[0] - '1')
			return f.choose(f.list.At)
		}
	}
	return nil
}

func (f *firstRun) choose(row int) tea.Cmd {
	n := len(f.o.Offers)
	switch {
	case row < n:
		f.key = &keyEntry{offer: f.o.Offers[row]}
		return nil
	case row == n && !f.answers:
		f.note = "Ollama does not answer: start it, then press r"
		return nil
	case row == n:
		f.chosen = FirstChoice{Provider: "ollama"}
	case row == n+1:
		f.chosen = FirstChoice{Provider: "demo"}
	}
	return tea.Quit
}

func (f *firstRun) typeKey(key tea.KeyPressMsg) tea.Cmd {
	k := f.key
	switch key.String() {
	case "esc", "ctrl+c":
		f.key = nil
	case "enter":
		text := strings.TrimSpace(string(k.text))
		if text == "" {
			f.key = nil
			return nil
		}
		f.chosen = FirstChoice{Provider: k.offer.Provider, Variable: k.offer.Variable, Key: text}
		return tea.Quit
	case "backspace":
		k.text = k.text[:max(0, len(k.text)-1)]
	case "ctrl+u":
		k.text = nil
	default:
		k.text = append(k.text, []rune(key.Text)...)
	}
	return nil
}

func (f *firstRun) View() tea.View {
	v := tea.NewView(strings.Join(f.frame(), "\n"))
	v.AltScreen = true
	return v
}

// frame is exactly as many lines as the screen is high.
func (f *firstRun) frame() []string {
	lines := f.lines()
	if len(lines) > f.height {
		lines = slices.DeleteFunc(lines, func(l string) bool { return l == "" })
	}
	if over := len(lines) - f.height; over > 0 && (f.key != nil || f.list.At > f.rows()/2) {
		lines = lines[over:] // where the person looks
	}
	for len(lines) < f.height {
		lines = append(lines, "")
	}
	return lines[:f.height]
}

func (f *firstRun) lines() []string {
	out := []string{"", "  " + f.theme.Paint(theme.Heading, "fermata"), "", "  No model is set up yet. Choose one:", ""}
	if f.o.Why != "" {
		out[3] = "  " + safetext.Cut(safetext.Line(f.o.Why), f.width-2)
	}
	for i := range f.rows() {
		name, note := f.label(i)
		line := fmt.Sprintf("  %d  %-28s", i+1, name)
		if i == f.list.At {
			line = f.theme.Paint(theme.Selected, line)
		}
		out = append(out, line+" "+f.theme.Paint(theme.Dim, safetext.Cut(note, f.width-safetext.Width(line)-2)))
	}
	out = append(out, "")
	if f.key != nil {
		out = append(out,
			"  Key for "+f.key.offer.Provider+": "+strings.Repeat("•", min(len(f.key.text), 40))+"▏",
			"  "+f.theme.Paint(theme.Dim, safetext.Cut("Next you are asked whether to save it. Commands do not get it.", f.width-2)),
			"  "+f.theme.Paint(theme.Dim, "Enter accepts · Esc goes back"))
		return out
	}
	if f.note != "" {
		out = append(out, "  "+f.theme.Paint(theme.Warn, safetext.Cut(f.note, f.width-2)))
	}
	return append(out, "  "+f.theme.Paint(theme.Dim, safetext.Cut("↑↓ and Enter, or the number · r looks for Ollama again · q quits", f.width-2)))
}

func (f *firstRun) label(row int) (name, note string) {
	n := len(f.o.Offers)
	switch {
	case row < n:
		o := f.o.Offers[row]
		return "enter a key for " + o.Provider, "or set " + o.Variable + " and start again"
	case row == n && !f.asked:
		return "a model on this machine", "looking for Ollama…"
	case row == n && f.answers:
		return "a model on this machine", "Ollama answers: " + safetext.Line(f.local)
	case row == n:
		return "a model on this machine", "Ollama does not answer"
	case row == n+1:
		return "the built-in demo", "needs no key and no network"
	}
	return "quit", ""
}
