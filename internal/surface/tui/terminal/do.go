package terminal

import tea "charm.land/bubbletea/v2"

// Do is the command that does something beside Update, and then calls what it returns in Update.
func Do(work func() (then func() tea.Cmd)) tea.Cmd {
	return func() tea.Msg { return Done{work()} }
}

// Done is the message of a command that Do has carried out. The model calls Then in Update.
type Done struct {
	Then func() tea.Cmd // what the work led to
}
