package composer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
	p "github.com/fermata-agent/fermata/protocol"
)

var testCommands = []Command{
	{Name: "resume", Args: "[ID]", Help: "open another conversation"},
	{Name: "new", Help: "start a conversation"},
	{Name: "compact", Help: "replace the history with a summary"},
	{Name: "model", Args: "[NAME]", Help: "choose the model"},
	{Name: "undo-turn", Help: "put the files of the last turn back"},
	{Name: "quit", Help: "leave"},
	{Name: "exit", Hidden: true},
}

// memory is a history in memory.
type memory struct {
	entries []string
	err     error
}

func (m *memory) Load() ([]string, error) { return m.entries, m.err }

func (m *memory) Add(s string) error {
	if m.err != nil {
		return m.err
	}
	m.entries = append(m.entries, s)
	return nil
}

// desk is a composer and what came of the keys.
type desk struct {
	t       *testing.T
	c       *Composer
	history *memory
	actions []Action // all but Used and nil
	last    Action
}

func newDesk(t *testing.T, entries ...string) *desk {
	t.Helper()
	d := &desk{t: t, history: &memory{entries: entries}}
	files := []string{"cmd/main.go", "docs/read me.md", "internal/main_test.go", "漢字.txt"}
	d.c = New(theme.New(theme.Options{}), Options{
		Context:  t.Context(),
		History:  d.history,
		Commands: testCommands,
		Files: func(_ context.Context, typed string) []string {
			return slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !strings.Contains(f, typed) })
		},
		Placeholder: "Say what to do",
	})
	d.run(d.c.Init())
	return d
}

func (d *desk) update(msg tea.Msg) {
	d.t.Helper()
	a, cmd := d.c.Update(msg)
	d.last = a
	if _, used := a.(Used); a != nil && !used {
		d.actions = append(d.actions, a)
	}
	last := d.last
	d.run(cmd)
	d.last = last
}

func (d *desk) run(cmd tea.Cmd) {
	if cmd != nil {
		d.update(cmd())
	}
}

// press presses keys by their names.
func (d *desk) press(names ...string) *desk {
	d.t.Helper()
	for _, n := range names {
		d.update(tuitest.Press(n))
	}
	return d
}

// write presses one key for each character.
func (d *desk) write(text string) *desk {
	d.t.Helper()
	for _, r := range text {
		if r == '\n' {
			d.press("ctrl+j")
			continue
		}
		d.press(strings.ReplaceAll(string(r), " ", "space"))
	}
	return d
}

func (d *desk) paste(text string) *desk {
	d.t.Helper()
	d.update(tea.PasteMsg{Content: text})
	return d
}

func (d *desk) wantText(want string) {
	d.t.Helper()
	if got := d.c.Text(); got != want {
		d.t.Errorf("text is %q, want %q", got, want)
	}
}

func (d *desk) wantActions(want ...Action) {
	d.t.Helper()
	if diff := cmp.Diff(want, d.actions); diff != "" {
		d.t.Errorf("actions (-want +got):\n%s", diff)
	}
	d.actions = nil
}

func (d *desk) popup() string { return strings.Join(d.c.Popup(60), "\n") }

func TestModeOfSending(t *testing.T) {
	for _, tc := range []struct {
		key  string
		busy bool
		want p.WhenBusy
	}{
		{"enter", false, p.Steer},
		{"enter", true, p.Steer},
		{"tab", true, p.Queue},
		{"alt+enter", true, p.Queue},
		{"ctrl+s", true, p.Replace},
		{"ctrl+s", false, p.Replace},
	} {
		d := newDesk(t)
		d.c.SetBusy(tc.busy)
		d.write("do it").press(tc.key)
		d.wantActions(Submit{Text: "do it", Mode: tc.want})
		d.wantText("")
	}
}

func TestQueueKeysWithoutATurn(t *testing.T) {
	d := newDesk(t).write("one").press("tab")
	if d.last != nil {
		t.Errorf("tab did %v although nothing runs", d.last)
	}
	d.press("alt+enter").write("two")
	d.wantText("one\ntwo")
	d.wantActions()
}

func TestNewlinesAndTrimming(t *testing.T) {
	d := newDesk(t).write("\n  a\nb").press("shift+enter").press("enter")
	d.wantActions(Submit{Text: "  a\nb", Mode: p.Steer})
	d.write(" \n ").press("enter")
	d.wantActions()
	d.wantText(" \n ")
}

func TestSlashCommands(t *testing.T) {
	d := newDesk(t).write("/resume abc def").press("enter")
	d.wantActions(Slash{"resume", "abc def"})
	d.wantText("")

	d.write("/exit").press("enter") // hidden, and known
	d.wantActions(Slash{"exit", ""})

	d.write("/resme now").press("enter")
	d.wantActions(Unknown{"resme"})
	d.wantText("/resme now")
	d.c.SetText("")

	d.write("/usr/bin is full").press("enter")
	d.write(" /new").press("enter")
	d.wantActions(Submit{Text: "/usr/bin is full", Mode: p.Steer}, Submit{Text: " /new", Mode: p.Steer})
}

func TestShellLine(t *testing.T) {
	d := newDesk(t).write("! git status").press("enter")
	d.wantActions(Shell{"git status"})
	d.wantText("")
	d.write("!").press("enter")
	d.wantActions()
	d.wantText("!")
}

func TestKeysOfTheApplication(t *testing.T) {
	d := newDesk(t)
	for _, key := range []string{"esc", "ctrl+c", "ctrl+d", "pgup", "pgdown", "ctrl+l", "ctrl+z", "up", "tab"} {
		if d.press(key); d.last != nil {
			t.Errorf("%s on an empty composer gave %v, want it free", key, d.last)
		}
	}
	d.write("x").press("ctrl+g")
	d.wantActions(Editor{})
	d.wantText("x")

	d.c.Blur()
	if d.press("y"); d.last != nil {
		t.Error("a key was used without the focus")
	}
	d.c.Focus()
	d.write("y")
	d.wantText("xy")
}

func TestPasteIsFolded(t *testing.T) {
	long := strings.Repeat("line\n", 11)
	for _, tc := range []struct{ paste, label string }{
		{long, "[pasted 11 lines #1]"},
		{strings.Repeat("line\n", 10), ""},
		{strings.Repeat("ä", 1001), "[pasted 1001 characters #1]"},
		{strings.Repeat("ä", 1000), ""},
		{strings.Repeat("a\r\n", 30), "[pasted 30 lines #1]"},
	} {
		d := newDesk(t).write("see ").paste(tc.paste).write(" ok")
		want := "see " + strings.ReplaceAll(tc.paste, "\r\n", "\n") + " ok"
		d.wantText(want)
		lines, _ := d.c.View(80, 20)
		if got := strings.Contains(strings.Join(lines, "\n"), "[pasted "); got != (tc.label != "") {
			t.Errorf("folded: %v, want label %q", got, tc.label)
		}
		if tc.label != "" && !strings.Contains(strings.Join(lines, "\n"), "see "+tc.label+" ok") {
			t.Errorf("label %q is missing in\n%s", tc.label, strings.Join(lines, "\n"))
		}
		d.press("enter")
		d.wantActions(Submit{Text: want, Mode: p.Steer})
	}
}

func TestFoldIsOneCharacter(t *testing.T) {
	d := newDesk(t).write("a").paste(strings.Repeat("x\n", 20)).write("b").press("left", "backspace")
	d.wantText("ab")
	d.press("ctrl+_")
	d.wantText("a" + strings.Repeat("x\n", 20) + "b")

	// What was folded is folded again when the text comes back from the editor.
	d.c.SetText("new " + d.c.Text())
	if lines, _ := d.c.View(80, 9); len(lines) != 3 {
		t.Errorf("the paste is not folded any more:\n%s", strings.Join(lines, "\n"))
	}
}

func TestForeignFoldCharactersAreHarmless(t *testing.T) {
	d := newDesk(t).paste(strings.Repeat("secret\n", 20)).press("enter")
	d.actions = nil
	d.paste("\U00108000").press("enter")
	d.c.Insert("\U00108000")
	d.press("enter")
	d.wantActions(Submit{Text: "\uFFFD", Mode: p.Steer}, Submit{Text: "\uFFFD", Mode: p.Steer})
}

func TestPasteIsCleaned(t *testing.T) {
	d := newDesk(t).paste("a\x1b[31mred\x1b[0m\x07\x00b\tc\rd\xff\u2028e")
	d.wantText("aredb\tc\nd\uFFFD\ne")
}

func TestImages(t *testing.T) {
	for _, tc := range []struct{ paste, path string }{
		{"/tmp/shot.png", "/tmp/shot.png"},
		{"'/tmp/my shot.PNG'\n", "/tmp/my shot.PNG"},
		{`/tmp/my\ shot\(1\).jpg `, "/tmp/my shot(1).jpg"},
		{"file:///tmp/a%20b.webp", "/tmp/a b.webp"},
		{"shot.png", ""},
		{"see /tmp/shot.png", ""},
		{"/tmp/a.png /tmp/b.png", ""},
		{"/tmp/notes.txt", ""},
	} {
		d := newDesk(t).write("look ").paste(tc.paste).press("enter")
		got := d.actions[0].(Submit)
		if want := tc.path; strings.Join(got.Images, "|") != want {
			t.Errorf("%q: images %q, want %q", tc.paste, got.Images, want)
		}
		if tc.path != "" && !strings.HasPrefix(got.Text, "look [image #1 ") {
			t.Errorf("text is %q", got.Text)
		}
	}
	d := newDesk(t)
	d.c.AddImage("/a/one.png")
	d.write(" and ")
	d.c.AddImage("/a/two.png")
	d.press("enter")
	sent := Submit{"[image #1 one.png] and [image #2 two.png]", []string{"/a/one.png", "/a/two.png"}, p.Steer}
	d.wantActions(sent)
	if diff := cmp.Diff([]string{"/a/one.png and /a/two.png"}, d.history.entries); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}

	d.c.SetText(sent.Text) // returned after a stop
	d.press("enter")
	d.wantActions(sent)
}

// An image that comes from elsewhere does not go into the history, for its size.
func TestHistoryHoldsNoImage(t *testing.T) {
	d := newDesk(t)
	d.c.SetText(d.c.WithImages("see [image #2 x.png]", []string{"data:image/png;base64,AAAA"}))
	d.press("enter")
	d.wantActions(Submit{"see [image #2 x.png]", []string{"data:image/png;base64,AAAA"}, p.Steer})
	if diff := cmp.Diff([]string{"see [image #2 x.png]"}, d.history.entries); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func TestFailingHistoryIsToldAndLosesNothing(t *testing.T) {
	broken := errors.New("disk is full")
	d := newDesk(t)
	d.history.err = broken
	d.run(d.c.Init())
	d.write("precious").press("enter")
	if len(d.actions) != 3 {
		t.Fatalf("actions are %v", d.actions)
	}
	for _, i := range []int{0, 2} {
		if f, ok := d.actions[i].(Failed); !ok || !errors.Is(f.Err, broken) {
			t.Errorf("action %d is %v, want a failure", i, d.actions[i])
		}
	}
	d.press("up")
	d.wantText("precious")
}

func TestMessagesOfAnotherComposerAreLeftAlone(t *testing.T) {
	a, b := newDesk(t, "of a"), newDesk(t)
	b.update(a.c.Init()())
	if b.press("up"); b.last != nil {
		t.Error("the history of another composer was taken")
	}
}
