package config

import "github.com/fermata-agent/fermata/internal/model/catalogue"

// Catalogue is what is known of models: the home's own copy, else the built-in one.
func (c *Config) Catalogue() *catalogue.Catalogue {
	if c.catalogue == nil {
		return catalogue.Open("")
	}
	return c.catalogue
}

// Window is how many tokens a model takes: what is configured, else what is known
// of it, else 0.
func (c *Config) Window(provider, model string) int64 {
	if c.ContextWindow > 0 {
		return c.ContextWindow
	}
	m, _ := c.Catalogue().Find(provider, model)
	return m.Window()
}

// DefaultEffort is the effort that a model is asked for when none was chosen: what
// the catalogue says, "" if it says nothing.
func (c *Config) DefaultEffort(provider, model string) string {
	m, _ := c.Catalogue().Find(provider, model)
	return m.DefaultEffort()
}
