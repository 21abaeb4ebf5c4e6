package config

import "strings"

// windows are how many tokens well-known models take as input, by how their names
// begin; a longer beginning counts more.
var windows = map[string]int64{
	"gpt-5":             272_000,
	"gpt-4.1":           1_047_576,
	"gpt-4o":            128_000,
	"gpt-oss":           131_072,
	"o1":                200_000,
	"o3":                200_000,
	"o4-mini":           200_000,
	"codex-mini-latest": 200_000,
	"claude-":           200_000,
}

// Window is how many tokens a model takes: what is configured, else what is known
// of it, else 0.
func (c *Config) Window(model string) int64 {
	if c.ContextWindow > 0 {
		return c.ContextWindow
	}
	best, size := "", int64(0)
	model = model[strings.LastIndexByte(model, '/')+1:] // some services put a vendor before it
	for name, n := range windows {
		if strings.HasPrefix(model, name) && len(name) > len(best) {
			best, size = name, n
		}
	}
	return size
}
