package fold

import (
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	p "github.com/fermata-agent/fermata/protocol"
)

var walks = flag.Int("walks", 60, "how many random journals to fold")

// same compares two states in everything that they hold, exported or not.
func same(want, got *State) string {
	want.History.Len() // decodes what was put off
	got.History.Len()
	if reflect.DeepEqual(want, got) { // much faster
		return ""
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(p.PromptItem{}, "Memo"),
		cmp.Exporter(func(reflect.Type) bool { return true }))
}

func foldAll(events []p.Event) *State {
	s := New()
	for _, e := range events {
		s.Evolve(e)
	}
	return s
}

// Restoring a state and folding the events that follow gives what folding all
// events gives: for random journals, damaged ones too, at every cut.
func TestRestoreAndTailIsReplay(t *testing.T) {
	reached := map[string]bool{}
	for seed := range uint64(*walks) {
		w := newWalk(t, seed)
		for range 40 + w.r.IntN(60) {
			w.step()
		}
		if seed%3 == 2 {
			w.damage()
		}
		checkCuts(t, seed, w.log, reached)
		if t.Failed() {
			return
		}
	}
	for path, ok := range reached {
		if !ok {
			t.Errorf("%s was never set: the random journals do not reach it", path)
		}
	}
}

func checkCuts(t *testing.T, seed uint64, log []p.Event, reached map[string]bool) {
	t.Helper()
	want := foldAll(log)
	state := New()
	for cut, e := range log {
		state.Evolve(e)
		reach(reached, "", reflect.ValueOf(state))
		data, err := state.Save()
		if err != nil {
			t.Fatal(err)
		}
		restored, err := Restore(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range log[cut+1:] {
			restored.Evolve(e)
		}
		if diff := same(want, restored); diff != "" {
			t.Errorf("seed %d, cut after event %d of %d (-replay +restored):\n%s", seed, cut+1, len(log), diff)
			return
		}
		if again, err := Restore(data); err != nil || same(state, again) != "" {
			t.Errorf("seed %d, cut after event %d (%v) (-saved +restored):\n%s", seed, cut+1, err, same(state, again))
			return
		}
	}
}

// reach notes which fields of our own types have ever been set.
func reach(reached map[string]bool, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			reach(reached, path, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			reach(reached, path+"[]", v.Index(i))
		}
	case reflect.Struct:
		if pkg := v.Type().PkgPath(); !strings.HasSuffix(pkg, "/fold") && !strings.HasSuffix(pkg, "/turn") && !strings.HasSuffix(pkg, "/history") {
			return
		}
		for i := range v.NumField() {
			name := path + "." + v.Type().Field(i).Name
			if name == ".History.saved" || name == ".History.lead" {
				continue // only before it is decoded; the first of the entries
			}
			reached[name] = reached[name] || !v.Field(i).IsZero()
			reach(reached, name, v.Field(i))
		}
	}
}

// The state is saved whole: every field is exported, and none is left out.
func TestEveryFieldIsSaved(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(path string, typ reflect.Type)
	check = func(path string, typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		marshals := typ.Implements(reflect.TypeFor[interface{ MarshalJSON() ([]byte, error) }]())
		if typ.Kind() != reflect.Struct || seen[typ] || marshals {
			return
		}
		seen[typ] = true
		names := map[string]bool{}
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if path+"."+f.Name == "State.History" {
				continue // saved beside the rest
			}
			if !f.IsExported() || name == "-" || name != "" && names[name] {
				t.Errorf("%s.%s is not saved", path, f.Name)
			}
			names[name] = true
			check(path+"."+f.Name, f.Type)
		}
	}
	check("State", reflect.TypeFor[State]())
	if len(seen) < 10 {
		t.Errorf("only looked at %v", slices.Collect(maps.Keys(seen)))
	}
}

// What was saved in another form is not restored.
func TestRestoreOfAnotherForm(t *testing.T) {
	s := New()
	s.Evolve(p.Event{Seq: 1, Body: &p.ConversationStarted{ID: "c"}})
	data, err := s.Save()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(data); err != nil {
		t.Errorf("today's form: %v", err)
	}
	older := strings.Replace(string(data), form(), "0-0", 1)
	for name, bad := range map[string]string{
		"another form": older, "no form": `{"id":"c","history":{}}`, "null": "null", "a list": "[]", "nothing": "", "no state": fmt.Sprintf(`{"Form":%q,"State":null}`, form()),
	} {
		if s, err := Restore([]byte(bad)); err == nil {
			t.Errorf("%s: restored %+v", name, s)
		}
	}
}

// The form differs if a type does, however deep.
func TestFormKnowsTheTypes(t *testing.T) {
	type inner struct{ A int }
	type other struct{ B int }
	forms := map[string]string{}
	for _, v := range []any{
		struct{ X []inner }{},
		struct{ X []other }{},
		struct{ Y []inner }{},
		struct{ X *inner }{},
		struct{ X map[string]inner }{},
		struct {
			X []inner `json:"x"`
		}{},
		struct {
			X []inner
			Z bool
		}{},
	} {
		var b strings.Builder
		describe(&b, reflect.TypeOf(v))
		if was, ok := forms[b.String()]; ok {
			t.Errorf("%T and %s have the same form %s", v, was, b.String())
		}
		forms[b.String()] = fmt.Sprintf("%T", v)
	}
}

// The history is full when the latest request has nearly filled the window of
// the model that it is for, until it is compacted.
func TestFull(t *testing.T) {
	s := New()
	step := func(b p.Body, want bool) {
		t.Helper()
		s.Evolve(p.Event{Seq: s.Seq + 1, Turn: 1, Body: b})
		if s.Full() != want {
			t.Errorf("after %T: full is %t, want %t", b, s.Full(), want)
		}
	}
	usage := func(n int64) *p.ModelEnded { return &p.ModelEnded{Response: 1, Usage: &p.Usage{Total: n}} }
	step(&p.ConversationStarted{Settings: p.Settings{}}, false)
	step(&p.TurnStarted{}, false)
	step(usage(1e9), false) // how much fits is not known
	step(&p.Configured{Settings: p.Settings{ContextWindow: 1000}}, false)
	step(&p.TurnEnded{}, true)
	step(&p.TurnStarted{}, true)
	step(usage(900), false)
	step(usage(901), true)
	step(&p.ModelEnded{Response: 1}, true) // how much it was is not known
	step(&p.Configured{Settings: p.Settings{ContextWindow: 2000}}, true)
	step(&p.Compacted{Summary: "short"}, false)
	step(usage(901), true)
	step(&p.TurnEnded{}, false)
}
