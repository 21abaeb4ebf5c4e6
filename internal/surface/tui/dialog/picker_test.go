package dialog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/surface/tui/tuitest"
)

var resume = PickerOptions{
	Title: "Conversations",
	Columns: []Column{
		{Title: "when", Width: 10},
		{Title: "ended", Width: 9, Drop: 2},
		{Title: "directory", Min: 12, Drop: 3},
		{Title: "title", Min: 20},
		{Title: "last line", Min: 20, Drop: 4},
	},
	Empty: "There are no conversations yet.",
}

func conversations() []Row {
	return []Row{
		{ID: "c1", Columns: []string{"just now", "completed", "~/project", "Fix the parser", "All tests pass now."}},
		{ID: "c2", Columns: []string{"5 min ago", "stopped", "~/project", "Write the lexer", "The lexer reads 漢字, too."}, Marked: true},
		{ID: "c3", Columns: []string{"2 h ago", "crashed", "/srv/家", "漢字かな交じり文の折り返しを直してください、長い題名です", "はい👍🏽"}},
		{ID: "c4", Columns: []string{"3 d ago", "failed"}},
		{ID: "c5", Columns: []string{"4 d ago", "completed", "~/x", "Evil \x1b[31mtitle\x1b]0;x\x07", "two\nlines\tand a tab"}},
	}
}

func newPicker(rows ...Row) *Picker {
	m := NewPicker(theme.New(theme.Options{}), resume)
	m.Append(rows...)
	m.View(80, 24)
	return m
}

func pressPicker(m *Picker, names ...string) Pick {
	var a Pick
	for _, n := range names {
		a, _ = m.Update(tuitest.Press(n))
	}
	return a
}

func (m *Picker) ids() []string {
	var ids []string
	for i := range m.len() {
		ids = append(ids, m.rows[m.row(i)].ID)
	}
	return ids
}

func (m *Picker) selected() string { r, _ := m.Selected(); return r.ID }

func TestKeys(t *testing.T) {
	for _, tc := range []struct {
		keys string
		want Pick
	}{
		{"enter", Pick{Used: true, Done: true, ID: "c1"}},
		{"down enter", Pick{Used: true, Done: true, ID: "c2"}},
		{"down ctrl+n up ctrl+p up enter", Pick{Used: true, Done: true, ID: "c1"}},
		{"end enter", Pick{Used: true, Done: true, ID: "c5"}},
		{"pgdown down enter", Pick{Used: true, Done: true, ID: "c5"}},
		{"end pgup enter", Pick{Used: true, Done: true, ID: "c1"}},
		{"end home enter", Pick{Used: true, Done: true, ID: "c1"}},
		{"l e x enter", Pick{Used: true, Done: true, ID: "c2"}},
		{"l e x backspace backspace backspace enter", Pick{Used: true, Done: true, ID: "c1"}},
		{"down l enter", Pick{Used: true, Done: true, ID: "c1"}}, // from the first match on
		{"q q enter", pickerUsed},
		{"q q esc", pickerUsed},
		{"q q esc enter", Pick{Used: true, Done: true, ID: "c1"}},
		{"q q esc esc", Pick{Used: true, Done: true}},
		{"esc", Pick{Used: true, Done: true}},
		{"ctrl+c", Pick{}},
		{"ctrl+d", Pick{}},
		{"ctrl+l", Pick{}},
	} {
		if diff := cmp.Diff(tc.want, pressPicker(newPicker(conversations()...), strings.Fields(tc.keys)...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.keys, diff)
		}
	}
	m := newPicker(conversations()...)
	m.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	if m.selected() != "c4" {
		t.Errorf("the wheel went to %s", m.selected())
	}
	m.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	if a, _ := m.Update(tea.MouseWheelMsg{Button: tea.MouseWheelLeft}); a.Used || m.selected() != "c1" {
		t.Errorf("the wheel went to %s", m.selected())
	}
}

func TestFilter(t *testing.T) {
	for _, tc := range []struct {
		typed string
		want  []string
	}{
		{"PARSER", []string{"c1"}},
		{"the", []string{"c1", "c2"}},
		{"project lex", []string{"c2"}}, // words of different columns, in any order
		{"lex project", []string{"c2"}},
		{"漢字", []string{"c2", "c3"}},
		{"  ", []string{"c1", "c2", "c3", "c4", "c5"}},
		{"nowparser", nil},
		{"passfix", nil}, // columns are not glued together
	} {
		m := newPicker(conversations()...)
		m.Update(tea.PasteMsg{Content: tc.typed + "\n"})
		if diff := cmp.Diff(tc.want, m.ids()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.typed, diff)
		}
	}
}

func TestRowsThatArriveLate(t *testing.T) {
	m := newPicker()
	pressPicker(m, "l", "e", "x")
	all := conversations()
	m.Append(all[0], all[1])
	m.Append(all[2:]...)
	if diff := cmp.Diff([]string{"c2"}, m.ids()); diff != "" {
		t.Errorf("with a filter (-want +got):\n%s", diff)
	}
	pressPicker(m, "esc", "down", "down")
	if m.selected() != "c3" {
		t.Fatalf("selected %s", m.selected())
	}
	m.Append(Row{ID: "c6"})
	slices.Reverse(all)
	m.SetRows(all)
	if m.selected() != "c3" {
		t.Errorf("the selection moved to %s", m.selected())
	}
	m.SetRows(all[:1])
	if m.selected() != "c5" {
		t.Errorf("the selected row is gone, and %s is selected", m.selected())
	}
	m.SetRows(nil)
	if _, ok := m.Selected(); ok || pressPicker(m, "enter").Done {
		t.Error("a row of an empty list was chosen")
	}
}

func TestMarkedRowIsSelectedFirst(t *testing.T) {
	m := newPicker()
	m.SetRows(conversations())
	if m.selected() != "c2" {
		t.Errorf("selected %s", m.selected())
	}
	m.Select("c4")
	m.Select("nosuch")
	if m.selected() != "c4" {
		t.Errorf("selected %s", m.selected())
	}
}

// The quick way to filter finds what a plain look at every row finds.
func TestFilterEqualsAPlainLook(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 9))
	m := newPicker()
	keys := []string{"a", "b", "c", "space", "backspace", "ctrl+w", "esc", "left", "home"}
	for i := range 5000 {
		switch rnd.IntN(10) {
		case 0:
			m.Append(Row{ID: fmt.Sprint(i), Columns: []string{random(rnd), random(rnd)}})
		case 1:
			if rnd.IntN(20) == 0 {
				m.SetRows([]Row{{ID: fmt.Sprint(i), Columns: []string{random(rnd)}}})
			}
		default:
			pressPicker(m, keys[rnd.IntN(len(keys))])
		}
		var want []string
		for _, r := range m.rows {
			text := strings.Join(r.Columns, "\n")
			if !slices.ContainsFunc(strings.Fields(m.filter.Text()), func(w string) bool { return !strings.Contains(text, w) }) {
				want = append(want, r.ID)
			}
		}
		if diff := cmp.Diff(want, m.ids()); diff != "" {
			t.Fatalf("filter %q (-want +got):\n%s", m.filter.Text(), diff)
		}
	}
}

func random(rnd *rand.Rand) string {
	var s strings.Builder
	for range rnd.IntN(8) {
		s.WriteByte("abc "[rnd.IntN(4)])
	}
	return s.String()
}

func TestPickerFrames(t *testing.T) {
	states := []struct {
		name  string
		setUp func(*Picker)
	}{
		{"all", func(*Picker) {}},
		{"scrolled", func(m *Picker) { pressPicker(m, "end") }},
		{"filtered", func(m *Picker) { pressPicker(m, "t", "h", "e", "down") }},
		{"wide filter", func(m *Picker) { pressPicker(m, "漢", "字") }},
		{"nothing matches", func(m *Picker) { pressPicker(m, "q", "q") }},
		{"loading", func(m *Picker) { m.SetRows(nil); m.SetLoading(true) }},
		{"no rows", func(m *Picker) { m.SetRows(nil) }},
		{"long title", func(m *Picker) { pressPicker(m, "down", "down") }},
		{"row without its last columns", func(m *Picker) { pressPicker(m, "down", "down", "down") }},
		{"note", func(m *Picker) {
			m.SetLoading(true)
			m.SetNote("open conversation c2: it is owned by process 4711\nof this machine")
		}},
	}
	for _, size := range [][2]int{{40, 8}, {40, 16}, {80, 12}, {120, 14}} {
		var all strings.Builder
		for _, s := range states {
			m := NewPicker(theme.New(theme.Options{}), resume)
			m.Append(conversations()...)
			m.View(size[0], size[1])
			s.setUp(m)
			lines, cursor := m.View(size[0], size[1])
			check(t, lines, cursor, size[0], size[1])
			fmt.Fprintf(&all, "== %s\n%s", s.name, tuitest.Frame(lines, cursor, size[0]))
		}
		tuitest.Golden(t, fmt.Sprintf("picker-%dx%d", size[0], size[1]), all.String())
	}
	m := NewPicker(theme.New(theme.Options{Dark: true, Color: true}), resume)
	m.Append(conversations()...)
	lines, cursor := m.View(80, 12)
	tuitest.Golden(t, "picker-colour", tuitest.Frame(lines, cursor, 80))
}

func check(t *testing.T, lines []string, cursor *tea.Cursor, width, height int) {
	t.Helper()
	tuitest.CheckWidth(t, lines, width)
	if len(lines) != max(height, 1) {
		t.Errorf("%d lines, want %d", len(lines), max(height, 1))
	}
	if cursor == nil || cursor.X >= max(width, 1) || cursor.Y >= len(lines) {
		t.Errorf("cursor %v in %d×%d", cursor, width, height)
	}
}

func TestPickerRandomKeysAndSizes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	keys := strings.Fields("up down pgup pgdown home end a e space 字 👍 backspace ctrl+w ctrl+u ctrl+y left right ctrl+_ esc enter ctrl+c tab")
	m := newPicker()
	for i := range longtest.Default(10_000, 4000) {
		switch rnd.IntN(40) {
		case 0:
			m.Append(conversations()...)
		case 1:
			m.SetRows(conversations()[:rnd.IntN(5)])
		case 2:
			m.SetLoading(rnd.IntN(2) == 0)
			m.SetNote(strings.Repeat("note ", rnd.IntN(40)))
		case 3:
			m.Update(tea.PasteMsg{Content: strings.Repeat("e\n", rnd.IntN(50))})
		}
		pressPicker(m, keys[rnd.IntN(len(keys))])
		width, height := rnd.IntN(130), rnd.IntN(30)
		lines, cursor := m.View(width, height)
		check(t, lines, cursor, width, height)
		if row, ok := m.Selected(); ok && height >= 8 && width > 40 && !strings.Contains(strings.Join(lines, "\n"), "›") {
			t.Errorf("row %s is selected and not seen", row.ID)
		}
		if t.Failed() {
			t.Fatalf("after %d keys", i)
		}
	}
}

func many(n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = Row{ID: fmt.Sprint(i), Columns: []string{
			fmt.Sprintf("%d h ago", i), "completed", fmt.Sprintf("~/projects/number-%d", i%97),
			fmt.Sprintf("Fix the thing with the number %d in the parser", i), "All the tests pass now, and the parser is faster.",
		}}
	}
	return rows
}

func BenchmarkFilter10000(b *testing.B) {
	m := NewPicker(theme.New(theme.Options{}), resume)
	m.SetRows(many(10_000))
	m.View(120, 40)
	keys := []tea.KeyPressMsg{tuitest.Press("9"), tuitest.Press("backspace")}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		m.Update(keys[i%2])
		m.View(120, 40)
		i++
	}
}

func BenchmarkFirstFilter10000(b *testing.B) {
	rows := many(10_000)
	m := NewPicker(theme.New(theme.Options{}), resume)
	b.ReportAllocs()
	for b.Loop() {
		m.filter.Reset()
		m.SetRows(rows)
		m.Update(tuitest.Press("9"))
		m.View(120, 40)
	}
}

func BenchmarkView10000(b *testing.B) {
	m := NewPicker(theme.New(theme.Options{}), resume)
	m.SetRows(many(10_000))
	b.ReportAllocs()
	for b.Loop() {
		m.Update(tuitest.Press("down"))
		m.View(120, 40)
	}
}
