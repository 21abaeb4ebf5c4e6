// Package picker is a full-screen list to choose one row of: conversations,
// models, approval modes. What is typed filters it. Rows may arrive late and
// incomplete, and ten thousand of them cost no more to draw than a screenful.
package picker

import (
	tea "charm.land/bubbletea/v2"

	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
)

// A Row is one thing to choose.
type Row struct {
	ID      string
	Columns []string
	Marked  bool // drawn with a mark: the present choice
	Partial bool // some columns are not known yet; see Wanted
}

// A Column describes one column of all rows.
type Column struct {
	Title string
	Width int // fixed; 0 shares what the others leave
	Min   int // of a column that shares: it is worth showing from this width on
	Drop  int // on a narrow screen the column with the highest Drop goes first; 0 stays
}

// Options describe a picker.
type Options struct {
	Title   string
	Columns []Column
	Empty   string // said when there are no rows at all
	Help    string // more keys that the application handles, for the last line
}

// An Action is what a message led to.
type Action struct {
	Used bool   // false: the picker has no use for the message
	Done bool   // the picker can go
	ID   string // with Done: the row that was chosen; empty after Esc
}

// A Model is an open picker. It is used by one goroutine.
type Model struct {
	theme *theme.Theme
	opts  Options
}

// New returns a picker without rows.
func New(t *theme.Theme, o Options) *Model { return &Model{theme: t, opts: o} }

// SetRows replaces all rows. The selection stays on the same ID if it is there.
func (m *Model) SetRows(rows []Row) {}

// Append adds rows at the end.
func (m *Model) Append(rows ...Row) {}

// Put replaces the row with the same ID, if there is one.
func (m *Model) Put(row Row) {}

// SetLoading says whether more rows are on their way.
func (m *Model) SetLoading(loading bool) {}

// SetNote shows a line above the keys, such as an error; empty takes it away.
func (m *Model) SetNote(note string) {}

// Select moves the selection to a row, if the filter lets it through.
func (m *Model) Select(id string) {}

// Selected returns the row that Enter would choose.
func (m *Model) Selected() (Row, bool) { return Row{}, false }

// Wanted returns the IDs of the partial rows that the last View showed and that
// were not named before, so that the application can look them up and Put them.
func (m *Model) Wanted() []string { return nil }

// Update takes a key, a paste or the mouse wheel.
func (m *Model) Update(msg tea.Msg) (Action, tea.Cmd) { return Action{}, nil }

// View returns exactly height lines of at most width columns, and the cursor in
// the filter.
func (m *Model) View(width, height int) ([]string, *tea.Cursor) { return make([]string, height), nil }
