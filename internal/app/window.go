package app

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"

	"github.com/fermata-agent/fermata/internal/app/window"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
	p "github.com/fermata-agent/fermata/protocol"
)

// defaultWindow is how many tokens a model is taken to accept of which nothing is known.
// If it accepts less, that is learnt from the service's refusal.
const defaultWindow = 128_000

// window returns how many tokens the model of some settings takes: what is configured,
// what its server says if that is on this machine, what the catalogue says, what any other server says. It is
// 0 if that is unknown.
func (m *Models) window(s p.Settings) int64 {
	if m.config.ContextWindow > 0 || s.Provider == config.Demo {
		return m.config.ContextWindow
	}
	known := m.config.Window(s.Provider, s.Model)
	_, service := catalogue.FindProvider(s.Provider)
	choice, err := m.chooseFor(s)
	if err != nil || service || choice.Provider.BaseURL == "" {
		return known
	}
	if !onThisMachine(choice.Provider.BaseURL) && known > 0 {
		return known
	}
	if said := window.Of(filepath.Join(m.config.Home, "cache", "windows"), choice.Provider.BaseURL, choice.Key.Reveal(), s.Model); said > 0 {
		return said
	}
	return known
}

func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// warnOfUnknown warns, once for each model, that its window is not known.
func (a *App) warnOfUnknown(s p.Settings) {
	if a.warn == nil || s.ContextWindow > 0 || s.Provider == config.Demo {
		return
	}
	if !a.firstWarning([2]string{s.Provider, s.Model}) {
		return
	}
	text := fmt.Sprintf("how many tokens model %q takes is not known; assuming %d: set model_context_window", s.Model, defaultWindow)
	if near := humanize.Nearest(s.Model, a.Models.modelsOf(s.Provider)); near != "" {
		text += fmt.Sprintf("; did you mean %s?", near)
	}
	a.warn(config.Warning{Problem: config.Problem{Text: text}})
}

// firstWarning reports whether no warning was given of a model yet, and remembers that one is.
func (a *App) firstWarning(model [2]string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.warned == nil {
		a.warned = map[[2]string]bool{}
	}
	first := !a.warned[model]
	a.warned[model] = true
	return first
}

// effort is the reasoning effort to ask for when none was chosen in the conversation.
func (m *Models) effort(s p.Settings) string {
	if m.config.Effort != "" {
		return m.config.Effort
	}
	known, _ := m.config.Catalogue().Find(s.Provider, s.Model)
	return known.DefaultEffort()
}

// Cost is what some usage of a model costs in US dollars. Its second result is false if the price is
// not known.
func (m *Models) Cost(s p.Settings, u p.Usage) (float64, bool) {
	known, ok := m.config.Catalogue().Find(s.Provider, s.Model)
	if !ok {
		return 0, false
	}
	return known.Cost(u)
}
