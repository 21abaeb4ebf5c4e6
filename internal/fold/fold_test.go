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

	"github.com/fermata-agent/fermata/internal/longtest"
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
	every := uint64(1)
	if !longtest.On() {
		every = 6
	}
	want := foldAll(log)
	state := New()
	for cut, e := range log {
		state.Evolve(e)
		reach(reached, "", reflect.ValueOf(state))
		if (uint64(cut)+seed)%every != 0 {
			continue
		}
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
			if name == ".History.saved" || name == ".History.lead" || strings.HasPrefix(name, ".History.group.calls[].own") || name == ".History.group.calls[].id" {
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

// The size of the next request is what the service said of the latest, and what came
// since; where it said nothing, it is estimated.
func TestTokens(t *testing.T) {
	s := New()
	step := func(b p.Body, want int64) {
		t.Helper()
		s.Evolve(p.Event{Seq: s.Seq + 1, Turn: 1, Body: b})
		if got := s.Tokens(100); got != want {
			t.Errorf("after %T: %d tokens, want %d", b, got, want)
		}
	}
	step(&p.ConversationStarted{Settings: p.Settings{Cwd: "/workdir"}}, 129)
	step(&p.TurnStarted{}, 129)
	step(&p.UserMessage{Content: p.Text(strings.Repeat("x", 4000-48))}, 1129)
	step(&p.ModelRequested{Response: 1}, 1129)
	step(&p.ToolCall{Call: p.CallID{Turn: 1, Response: 1}, Name: strings.Repeat("x", 400-48)}, 1229)
	step(&p.ModelEnded{Response: 1, Usage: &p.Usage{Input: 4000, Total: 5000}}, 5000)
	step(&p.ToolOutput{Call: p.CallID{Turn: 1, Response: 1}, Output: strings.Repeat("x", 400)}, 5100)
	step(&p.ModelRequested{Response: 2}, 5112)
	step(&p.ModelEnded{Response: 2}, 5112) // how much it was is not known
	if got := s.Tokens(100, p.Text(strings.Repeat("x", 4000))); got != 6112 {
		t.Errorf("with a message: %d", got)
	}
	s.Evolve(p.Event{Seq: s.Seq + 1, Turn: 1, Body: &p.Compacted{Summary: "short", Keep: 10}})
	if got := s.Tokens(100); got > 1000 {
		t.Errorf("after a compaction: %d", got)
	}
}

// The window is what is known of the model, and not more than its service has said.
func TestWindow(t *testing.T) {
	s := New()
	step := func(b p.Body, want int64) {
		t.Helper()
		s.Evolve(p.Event{Seq: s.Seq + 1, Turn: 1, Body: b})
		if got := s.Window(); got != want {
			t.Errorf("after %T: %d, want %d", b, got, want)
		}
	}
	refused := func(window int64) *p.ModelEnded {
		return &p.ModelEnded{Response: 1, Error: &p.Error{Kind: p.ErrorContextLength, Window: window}}
	}
	step(&p.ConversationStarted{Settings: p.Settings{Model: "a"}}, 0)
	step(&p.TurnStarted{}, 0)
	step(refused(0), 0)
	step(refused(8000), 8000)
	step(refused(9000), 8000)
	step(refused(6000), 6000)
	step(&p.ModelEnded{Response: 1, Usage: &p.Usage{Input: 7000, Total: 7000}}, 7000) // it takes more than was thought
	step(&p.TurnEnded{}, 7000)
	step(&p.Configured{Settings: p.Settings{Model: "b", ContextWindow: 20000}}, 20000)
	step(&p.TurnStarted{}, 20000)
	step(refused(50000), 20000)
	step(refused(10000), 10000)
	step(&p.HoldEnded{Settings: &p.Settings{Model: "a"}}, 7000)
}

// A turn in plan mode is read-only, whatever the conversation's sandbox is; a command of the
// user's own is not the model's.
func TestPlanModeIsReadOnly(t *testing.T) {
	s := New()
	full := p.Settings{Cwd: "/w", Plan: true, Sandbox: p.SandboxPolicy{Mode: p.SandboxFullAccess, NetworkAccess: true}}
	s.Evolve(p.Event{Seq: 1, Body: &p.ConversationStarted{Settings: full}})
	s.Evolve(p.Event{Seq: 2, Turn: 1, Body: &p.TurnStarted{}})
	if got := s.TurnSettings; !got.Plan || got.Sandbox.Mode != p.SandboxReadOnly || got.Sandbox.NetworkAccess || s.Settings.Sandbox.Mode != p.SandboxFullAccess {
		t.Errorf("the turn has %+v", got)
	}
	s.Evolve(p.Event{Seq: 3, Turn: 2, Body: &p.TurnStarted{Shell: true}})
	if got := s.TurnSettings; got.Plan || got.Sandbox.Mode != p.SandboxFullAccess {
		t.Errorf("the user's own command has %+v", got)
	}
}
