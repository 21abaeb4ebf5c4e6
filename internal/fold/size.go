package fold

import (
	"maps"

	"github.com/fermata-agent/fermata/internal/history"
	p "github.com/fermata-agent/fermata/protocol"
)

// measure takes what a response says of the size of the history, and of how much its
// service takes.
func (s *State) measure(b *p.ModelEnded) {
	key := modelKey(s.SettingsNow())
	if u := b.Usage; u != nil {
		s.Usage = s.Usage.Add(*u)
		if u.Total > u.Output { // some services count the output only
			s.Size, s.SizeAt = u.Total, s.History.Size()
		}
		if known := s.Windows[key]; known > 0 && u.Total > known {
			s.learn(key, u.Total) // it takes more than was thought
		}
	}
	if b.Error == nil || b.Error.Kind != p.ErrorContextLength || b.Error.Window == 0 {
		return
	}
	if known := s.Windows[key]; known == 0 || b.Error.Window < known {
		s.learn(key, b.Error.Window)
	}
}

func (s *State) learn(model string, window int64) {
	s.Windows = maps.Clone(s.Windows)
	if s.Windows == nil {
		s.Windows = map[string]int64{}
	}
	s.Windows[model] = window
}

// SettingsNow returns the settings of the turn that runs, or of the next one.
func (s *State) SettingsNow() p.Settings {
	if s.Active {
		return s.TurnSettings
	}
	return s.Settings
}

func modelKey(s p.Settings) string { return s.Provider + "/" + s.Model }

// Window is how many tokens the model takes.
func (s *State) Window() int64 { return s.WindowOf(s.SettingsNow()) }

// WindowOf is how many tokens the model of some settings takes: what is configured or known of it, and not
// more than its service has said. It is 0 if nothing is known.
func (s *State) WindowOf(settings p.Settings) int64 {
	window, learnt := settings.ContextWindow, s.Windows[modelKey(settings)]
	if window == 0 || learnt > 0 && learnt < window {
		return learnt
	}
	return window
}

// Tokens estimates how many tokens the next request has, with some messages added:
// what the service said of the latest, and what came since. Where it said nothing, it is estimated from
// the bytes; overhead is then what is sent beside the history.
func (s *State) Tokens(overhead int64, added ...[]p.Content) int64 {
	var more int64
	for _, content := range added {
		more += s.History.MessageSize(content)
	}
	if s.Size > 0 {
		return s.Size + history.Tokens(max(0, s.History.Size()-s.SizeAt)+more)
	}
	return overhead + history.Tokens(s.History.Size()+more)
}
