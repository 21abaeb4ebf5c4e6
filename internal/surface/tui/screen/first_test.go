package screen

import (
	"context"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
)

// newScreen is the first run's screen, with or without a local server.
func newScreen(answers bool) *firstRun {
	f := &firstRun{
		theme: theme.New(theme.Options{Dark: true}), width: 80, height: 20,
		o: FirstOptions{
			Offers: []KeyOffer{{"openai", "OPENAI_API_KEY"}, {"anthropic", "ANTHROPIC_API_KEY"}},
			Probe:  func(context.Context) (string, bool) { return "llama, qwen", answers },
		},
	}
	return f
}

// do presses keys; it returns whether the screen is left.
func (f *firstRun) do(keys ...string) bool {
	for _, k := range keys {
		if _, cmd := f.Update(tuitest.Press(k)); cmd != nil {
			msg := cmd()
			if _, ok := msg.(tea.QuitMsg); ok {
				return true
			}
			f.Update(msg)
		}
	}
	return false
}

func (f *firstRun) text() string {
	lines := f.frame()
	for i, l := range lines {
		lines[i] = ansi.Strip(l)
	}
	return tuitest.Frame(lines, nil, f.width)
}

func TestFirstRun(t *testing.T) {
	for name, tt := range map[string]struct {
		answers bool
		keys    []string
		want    FirstChoice
		stays   bool
	}{
		"demo":                {keys: []string{"4"}, want: FirstChoice{Provider: "demo"}},
		"demo by arrows":      {keys: []string{"down", "down", "down", "enter"}, want: FirstChoice{Provider: "demo"}},
		"up from the first":   {keys: []string{"up", "up", "enter"}, want: FirstChoice{Provider: "demo"}},
		"ollama":              {answers: true, keys: []string{"r", "3"}, want: FirstChoice{Provider: "ollama"}},
		"no ollama":           {keys: []string{"r", "3"}, stays: true},
		"leave":               {keys: []string{"5"}},
		"leave by ctrl-c":     {keys: []string{"ctrl+c"}},
		"leave by q":          {keys: []string{"q"}},
		"a key":               {keys: []string{"2", "k", "x", "backspace", "1", "enter"}, want: FirstChoice{"anthropic", "ANTHROPIC_API_KEY", "k1"}},
		"no key":              {keys: []string{"1", "enter"}, stays: true},
		"a key abandoned":     {keys: []string{"1", "k", "esc"}, stays: true},
		"a key begun again":   {keys: []string{"1", "x", "ctrl+u", "y", "enter"}, want: FirstChoice{"openai", "OPENAI_API_KEY", "y"}},
		"q is part of a key":  {keys: []string{"1", "q", "enter"}, want: FirstChoice{"openai", "OPENAI_API_KEY", "q"}},
		"a row that is not":   {keys: []string{"9"}, stays: true},
		"backspace and empty": {keys: []string{"1", "backspace", "a", "enter"}, want: FirstChoice{"openai", "OPENAI_API_KEY", "a"}},
	} {
		f := newScreen(tt.answers)
		if left := f.do(tt.keys...); left == tt.stays || f.chosen != tt.want {
			t.Errorf("%s: left %v with %+v, want %+v", name, left, f.chosen, tt.want)
		}
	}
}

func TestPastedKey(t *testing.T) {
	f := newScreen(false)
	f.Update(tea.PasteMsg{Content: "nothing"}) // there is nothing to paste into
	f.do("1")
	f.Update(tea.PasteMsg{Content: " sk-pasted\n"})
	if strings.Contains(f.text(), "sk-") {
		t.Errorf("the key is to be read:\n%s", f.text())
	}
	if f.do("enter"); f.chosen.Key != "sk-pasted" {
		t.Errorf("the key is %q", f.chosen.Key)
	}
}

func TestFirstRunFrames(t *testing.T) {
	f := newScreen(true)
	out := f.text()
	f.do("r", "down")
	out += f.text()
	f.do("1", "a", "b")
	out += f.text()
	f = newScreen(false)
	f.width, f.height = 40, 12
	f.do("r", "3")
	out += f.text()
	tuitest.Golden(t, "first", out)
}

// On a small screen the row that is chosen is seen, and the key being entered.
func TestSmallScreen(t *testing.T) {
	for height := 3; height < 20; height++ {
		f := newScreen(false)
		f.height = height
		f.do("down", "down", "down", "down")
		if got := f.text(); !strings.Contains(got, "5  quit") && height > 4 {
			t.Errorf("of %d lines:\n%s", height, got)
		}
		f.do("1", "k")
		if got := f.text(); !strings.Contains(got, "Key for openai: •") && height > 3 {
			t.Errorf("of %d lines:\n%s", height, got)
		}
	}
}
