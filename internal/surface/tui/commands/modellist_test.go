package commands

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/model/catalogue"
)

// The model that would be used comes first, with what the catalogue says of it; then the others of its service.
func TestRows(t *testing.T) {
	c := catalogue.Open(filepath.Join(t.TempDir(), "none"))
	at := slices.IndexFunc(slices.Collect(c.All()), func(m catalogue.Model) bool { return m.Provider == "openai" && m.Price.Known })
	some := slices.Collect(c.All())[at]
	list := rowsOf([]app.ModelRow{{Provider: "openai", Model: some.ID, Note: "OpenAI"}, {Provider: "local", Model: "mine"}}, c)
	if len(list) < 3 || !list[0].is("openai", some.ID) || list[0].Facts.Window() == 0 || !list[len(list)-1].is("local", "mine") {
		t.Fatalf("%d rows: %v", len(list), list[:min(1, len(list))])
	}
	names := map[string]int{}
	for _, r := range list {
		names[r.Provider+"/"+r.Model]++
	}
	if names["openai/"+some.ID] != 1 {
		t.Errorf("%s is listed %d times", some.ID, names["openai/"+some.ID])
	}
}

func row(provider, model string) modelRow {
	return modelRow{ModelRow: app.ModelRow{Provider: provider, Model: model}}
}

func TestModelInUseIsListed(t *testing.T) {
	list := []modelRow{row("a", "one"), row("b", "two")}
	if got := with(list, "b", "two"); len(got) != 2 {
		t.Errorf("a model that is listed makes %d rows", len(got))
	}
	if got := with(list, "b", "one"); len(got) != 3 || !got[0].is("b", "one") {
		t.Errorf("one of another provider: %v", got)
	}
	if got := with(list, "", ""); len(got) != 2 {
		t.Errorf("no model makes %d rows", len(got))
	}
}

func TestModelByName(t *testing.T) {
	list := []modelRow{row("a", "one"), row("b", "one"), row("b", "two"), row("c", "b/two")}
	for name, want := range map[string]modelRow{"one": list[1], "a/one": list[0], "two": list[2], "b/two": list[2]} {
		if got, ok := named(list, name, "b"); !ok || !got.is(want.Provider, want.Model) {
			t.Errorf("%s is %s/%s, want %s/%s", name, got.Provider, got.Model, want.Provider, want.Model)
		}
	}
	if got, _ := named(list, "b/two", "c"); !got.is("c", "b/two") {
		t.Errorf("the name of a model of the provider in use is %s/%s", got.Provider, got.Model)
	}
	if got, ok := named(list, "three", "b"); ok {
		t.Errorf("three is %v", got)
	}
}
