package dialog

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/draw"
	"github.com/fermata-agent/fermata/internal/surface/tui/edit"
	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// A Row is one thing to choose.
type Row struct {
	ID      string         // unique in its list, and not empty
	Columns []string       // what is shown, and searched
	Marked  bool           // drawn with a mark: the present choice
	Choose  func() tea.Cmd // what choosing it does; may be nil
}

// A Column describes one column of all rows.
type Column struct {
	Title string // above the column
	Width int    // fixed; 0 shares what the others leave, in proportion to Min
	Min   int    // of a column that shares: it is worth showing from this width on
	Drop  int    // on a narrow screen the column with the highest Drop goes first; 0 stays
}

// PickerOptions describe a picker.
type PickerOptions struct {
	Title   string   // above the list
	Columns []Column // of all rows
	Empty   string   // shown when there are no rows at all
	Help    string   // more keys that the application handles, for the last line
	Stays   bool     // the list stays when a row was chosen
	// Tab is where the key of that name leads. May be nil.
	Tab func() tea.Cmd
}

// A Pick is what a message to a picker led to.
type Pick struct {
	Used bool   // false: the picker has no use for the message
	Done bool   // the picker can go
	ID   string // with Done: the row that was chosen; empty after Esc
}

// A Picker is a full-screen list to choose one row of: conversations, models,
// approval modes. What is typed filters it: each word has to be in some column,
// capitals or not. Rows may arrive late, and ten thousand of them cost no more to
// draw than a screenful. It is used by one goroutine.
type Picker struct {
	theme   *theme.Theme
	opts    PickerOptions
	filter  edit.Buffer
	rows    []Row
	texts   []string  // what the filter looks at, for the first rows; made when needed
	words   []string  // of the filter that matches holds for
	matches []int     // rows that the filter lets through; all if there are no words
	list    draw.List // which of them is selected, and on the screen
	chosen  bool      // the person moved the selection
	page    int       // how many rows the screen has
	loading bool
	missing string // why rows are missing
	note    string
}

// NewPicker returns a picker without rows.
func NewPicker(t *theme.Theme, o PickerOptions) *Picker {
	m := &Picker{theme: t, opts: o, page: 10}
	m.filter.Single = true
	return m
}

// SetRows replaces all rows. The selection stays on the same ID if it is there;
// before the user has moved it, it is on the marked row.
func (m *Picker) SetRows(rows []Row) {
	old, ok := m.Selected()
	m.rows = slices.Clone(rows)
	m.texts = nil
	m.refilter()
	m.list.At = 0
	if ok && m.chosen {
		m.Select(old.ID)
		return
	}
	if i := slices.IndexFunc(rows, func(r Row) bool { return r.Marked }); i >= 0 {
		m.Select(rows[i].ID)
	}
}

// Append adds rows at the end.
func (m *Picker) Append(rows ...Row) {
	first := len(m.rows)
	m.rows = append(m.rows, rows...)
	if len(m.words) == 0 {
		return
	}
	for i := first; i < len(m.rows); i++ {
		if m.fits(i) {
			m.matches = append(m.matches, i)
		}
	}
}

// Stays reports whether the list stays when a row was chosen.
func (m *Picker) Stays() bool { return m.opts.Stays }

// SetLoading says whether more rows are on their way.
func (m *Picker) SetLoading(loading bool) { m.loading = loading }

// SetMissing says why rows are missing: in the place of Empty if there are none, else where notes are. A note goes first.
func (m *Picker) SetMissing(why string) { m.missing = why }

// SetNote shows a line above the keys, such as an error; empty takes it away.
func (m *Picker) SetNote(note string) { m.note = note }

// Select moves the selection to a row, if the filter lets it through.
func (m *Picker) Select(id string) {
	for i := range m.len() {
		if m.rows[m.row(i)].ID == id {
			m.list.At = i
			return
		}
	}
}

// Selected returns the row that Enter would choose.
func (m *Picker) Selected() (Row, bool) {
	if m.list.At >= m.len() {
		return Row{}, false
	}
	return m.rows[m.row(m.list.At)], true
}

// len returns how many rows the filter lets through.
func (m *Picker) len() int {
	if len(m.words) == 0 {
		return len(m.rows)
	}
	return len(m.matches)
}

// row returns the number of the ith row that the filter lets through.
func (m *Picker) row(i int) int {
	if len(m.words) == 0 {
		return i
	}
	return m.matches[i]
}

// refilter finds the rows for the words that are typed. Words that only grew can
// match nothing new, so then just the matches are looked through.
func (m *Picker) refilter() {
	words := strings.Fields(strings.ToLower(m.filter.Text()))
	if narrower(words, m.words) && m.texts != nil {
		m.words = words
		m.matches = slices.DeleteFunc(m.matches, func(i int) bool { return !m.fits(i) })
		return
	}
	m.words, m.matches = words, m.matches[:0]
	if len(words) == 0 {
		return
	}
	for i := range m.rows {
		if m.fits(i) {
			m.matches = append(m.matches, i)
		}
	}
}

// narrower reports whether each old word is the beginning of the new one in its
// place.
func narrower(words, old []string) bool {
	if len(old) == 0 || len(words) < len(old) {
		return false
	}
	for i := range old {
		if !strings.HasPrefix(words[i], old[i]) {
			return false
		}
	}
	return true
}

// fits reports whether all words are in a row.
func (m *Picker) fits(i int) bool {
	for n := len(m.texts); n <= i; n++ {
		m.texts = append(m.texts, strings.ToLower(strings.Join(m.rows[n].Columns, "\n")))
	}
	for _, w := range m.words {
		if !strings.Contains(m.texts[i], w) {
			return false
		}
	}
	return true
}
