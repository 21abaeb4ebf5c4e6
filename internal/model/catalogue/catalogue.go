// Package catalogue knows models and the services that run them: how much a model
// reads and writes, which reasoning efforts it has, whether it sees images, what it
// costs, and which tools its family works best with.
//
// The facts are two embedded tables, models.tsv and providers.tsv (from models.dev,
// see LICENSE.models.dev). A newer copy of the first may be in the home directory,
// see [File]. Nothing is read before the first look-up, and a look-up is one pass
// over the text.
package catalogue

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fermata-agent/fermata/internal/regular"
	"github.com/fermata-agent/fermata/protocol"
)

//go:embed models.tsv
var embedded string

// FileName is the name of the newer copy in the home directory.
const FileName = "models.tsv"

// File is where the newer copy of the models is kept.
func File(home string) string { return filepath.Join(home, FileName) }

// A Model is what is known of one model at one provider. A number that is not known
// is 0.
type Model struct {
	Provider    string
	ID          string
	Context     int64 // tokens of input and output together
	InputLimit  int64 // tokens of input, where that is less
	OutputLimit int64
	Reasoning   bool
	Efforts     []string // in the table's order
	Vision      bool
	Price       Price
	Released    string // YYYY-MM-DD or YYYY-MM
}

// A Price is in US dollars for a million tokens.
type Price struct {
	Known                                bool
	Input, Output, CacheRead, CacheWrite float64
}

// Window is how many tokens a request may have.
func (m Model) Window() int64 {
	if m.InputLimit > 0 {
		return m.InputLimit
	}
	return m.Context
}

// DefaultEffort is the effort to ask for when none was chosen: medium where the
// model lists it, else none.
func (m Model) DefaultEffort() string {
	if slices.Contains(m.Efforts, "medium") {
		return "medium"
	}
	return ""
}

// Cost is what the tokens cost in US dollars. Its second result is false if the
// price is not known.
func (m Model) Cost(u protocol.Usage) (float64, bool) {
	return m.Price.Cost(u)
}

// Cost is what the tokens cost in US dollars. Its second result is false if the
// price is not known.
func (p Price) Cost(u protocol.Usage) (float64, bool) {
	if !p.Known {
		return 0, false
	}
	fresh := max(0, u.Input-u.Cached-u.CacheWrite)
	sum := float64(fresh)*p.Input + float64(u.Cached)*p.CacheRead + float64(u.CacheWrite)*p.CacheWrite + float64(u.Output)*p.Output
	return sum / 1e6, true
}

// A Catalogue is the models of one home directory. It may be used from any goroutine.
type Catalogue struct {
	text func() (string, error)
}

// Open returns the catalogue of a home directory: its own copy, else the embedded
// one. It reads nothing yet. With an empty home it is the embedded one.
func Open(home string) *Catalogue {
	return &Catalogue{text: sync.OnceValues(func() (string, error) {
		if home == "" {
			return embedded, nil
		}
		text, err := regular.ReadFile(File(home))
		if errors.Is(err, fs.ErrNotExist) {
			return embedded, nil
		}
		if err != nil {
			return embedded, fmt.Errorf("read models: %w", err)
		}
		if err := Check(string(text)); err != nil {
			return embedded, fmt.Errorf("read models %s: %w", File(home), err)
		}
		return string(text), nil
	})}
}

// Err says why the home's own copy is not used, if there is one that cannot be.
func (c *Catalogue) Err() error {
	_, err := c.text()
	return err
}

// All gives every model in the table's order.
func (c *Catalogue) All() iter.Seq[Model] {
	return func(yield func(Model) bool) {
		text, _ := c.text()
		for line := range rows(text) {
			m, err := parse(line)
			if err == nil && !yield(m) {
				return
			}
		}
	}
}

// IDs are the models of a provider in the table's order. It reads no more of them than that.
func (c *Catalogue) IDs(provider string) []string {
	var list []string
	text, _ := c.text()
	for line := range rows(text) {
		if rest, ok := strings.CutPrefix(line, provider+"\t"); ok {
			id, _, _ := strings.Cut(rest, "\t")
			list = append(list, id)
		}
	}
	return list
}

// Find looks a model up by its exact id: at the provider, then at the model's maker,
// then at any provider. If there is none, the id is tried again without the vendor
// before it, the variant behind a colon and the date behind it.
func (c *Catalogue) Find(provider, id string) (Model, bool) {
	text, _ := c.text()
	for _, id := range spellings(id) {
		if m, ok := find(text, provider, id); ok {
			return m, true
		}
	}
	return older(id)
}

// FindExact looks a model up by provider and id, and nowhere else.
func (c *Catalogue) FindExact(provider, id string) (Model, bool) {
	text, _ := c.text()
	m, ok := find(text, provider, id)
	return m, ok && m.Provider == provider
}

// makers are the providers that run their own models only.
var makers = []string{"openai", "anthropic", "google", "xai", "mistral", "deepseek", "moonshotai", "zai", "alibaba", "minimax"}

func find(text, provider, id string) (Model, bool) {
	if !strings.Contains(text, "\t"+id+"\t") {
		return Model{}, false
	}
	best, quality := "", 0
	for line := range rows(text) {
		p, rest, _ := strings.Cut(line, "\t")
		name, _, _ := strings.Cut(rest, "\t")
		if name != id {
			continue
		}
		q := 1
		switch {
		case p == provider:
			q = 3
		case slices.Contains(makers, p):
			q = 2
		}
		if q > quality {
			best, quality = line, q
		}
	}
	if quality == 0 {
		return Model{}, false
	}
	m, err := parse(best)
	return m, err == nil
}

// spellings are the names under which a model may be listed, the exact one first.
func spellings(id string) []string {
	list := []string{id}
	add := func(s string) {
		if s != "" && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	add(id[strings.LastIndexByte(id, '/')+1:])
	for _, s := range slices.Clone(list) {
		if base, variant, ok := strings.Cut(s, ":"); ok && !strings.ContainsAny(variant, "0123456789") {
			add(base)
		}
	}
	for _, s := range slices.Clone(list) {
		add(withoutDate(s))
	}
	for _, s := range slices.Clone(list) {
		add(strings.ToLower(s))
	}
	return list
}

// withoutDate takes a date away from the end: -20250805, -2025-08-05 or @20250805.
func withoutDate(id string) string {
	for _, form := range []string{"-dddddddd", "@dddddddd", "-dddd-dd-dd"} {
		n := len(id) - len(form)
		if n > 0 && matches(id[n:], form) {
			return id[:n]
		}
	}
	return id
}

func matches(s, form string) bool {
	for i := range form {
		digit := s[i] >= '0' && s[i] <= '9'
		if form[i] == 'd' != digit || form[i] != 'd' && form[i] != s[i] {
			return false
		}
	}
	return true
}

// older knows the windows of models that are older than the table, by how their
// names begin.
func older(id string) (Model, bool) {
	name := id[strings.LastIndexByte(id, '/')+1:]
	for _, o := range olderModels {
		if strings.HasPrefix(name, o.prefix) {
			return Model{Provider: o.provider, ID: id, Context: o.context, Vision: o.vision, Reasoning: o.reasoning}, true
		}
	}
	return Model{}, false
}

var olderModels = []struct {
	prefix, provider string
	context          int64
	vision           bool
	reasoning        bool
}{
	{"gpt-4o", "openai", 128_000, true, false},
	{"gpt-4-turbo", "openai", 128_000, true, false},
	{"gpt-3.5-turbo", "openai", 16_385, false, false},
	{"o1", "openai", 200_000, true, true},
	{"o3", "openai", 200_000, true, true},
	{"codex-mini-latest", "openai", 200_000, true, true},
	{"gpt-oss", "openai", 131_072, false, true},
	{"claude-3", "anthropic", 200_000, true, false},
	{"claude-", "anthropic", 200_000, true, true},
	{"gpt-5", "openai", 272_000, true, true},
}
