package catalogue

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed providers.tsv
var providers string

// A Provider is a service that runs models.
type Provider struct {
	ID      string
	Name    string   // for people
	EnvKeys []string // variables that may hold the key; the first one that is set counts
	BaseURL string   // may contain the name of a variable in braces
	Wire    string   // responses, chat or anthropic
}

// Providers are the services there are, in the table's order.
func Providers() []Provider { return slices.Clone(allProviders()) }

var allProviders = sync.OnceValue(func() []Provider {
	var list []Provider
	for line := range rows(providers) {
		f := strings.Split(line, "\t")
		list = append(list, Provider{ID: f[0], Name: f[1], EnvKeys: strings.Split(f[2], ","), BaseURL: f[3], Wire: f[4]})
	}
	return list
})

// FindProvider looks a service up by its id.
func FindProvider(id string) (Provider, bool) {
	list := allProviders()
	i := slices.IndexFunc(list, func(p Provider) bool { return p.ID == id })
	if i < 0 {
		return Provider{}, false
	}
	return list[i], true
}
