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

// Addresses returns the base URLs of the services.
func Addresses() []string {
	var list []string
	for _, p := range allProviders() {
		list = append(list, p.BaseURL)
	}
	return list
}

// SplitAddress takes a base URL apart that names a variable in braces.
func SplitAddress(base string) (before, name, after string, ok bool) {
	before, rest, opened := strings.Cut(base, "{")
	name, after, closed := strings.Cut(rest, "}")
	return before, name, after, opened && closed
}

// AddressVariables returns the variables that base URLs name.
func AddressVariables(bases ...string) []string {
	var names []string
	for _, base := range bases {
		if _, name, _, ok := SplitAddress(base); ok {
			names = append(names, name)
		}
	}
	return names
}
