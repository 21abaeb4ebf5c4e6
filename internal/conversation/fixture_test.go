package conversation_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

var update = flag.Bool("update", false, "write the transcripts of journals that have none")

// theKinds are the kinds of event that the version wrote which made the journals.
var theKinds = strings.Fields(`
	approval_requested approval_resolved assistant_message background_ended background_started call_started
	command_started compacted configured conversation_started damaged history_repaired input_accepted input_edited
	input_returned model_ended model_requested model_retry notice patch_committed patch_settled patch_started
	plan_updated reasoning renamed reverted stop_requested tool_call tool_output turn_diff turn_ended turn_started
	undone user_message`)

// What an earlier version wrote is shown as that version showed it, and every
// conversation opens and continues.
func TestEarlierJournals(t *testing.T) {
	dirs, err := filepath.Glob("testdata/journals/*/conversations")
	if err != nil || len(dirs) < 7 {
		t.Fatalf("the journals are missing: %v, %v", dirs, err)
	}
	seen := map[string]bool{}
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir))
		t.Run(name, func(t *testing.T) {
			store, id := copyHome(t, filepath.Dir(dir))
			events := readAll(t, store, id)
			for _, e := range events {
				seen[p.Kind(e.Body)] = true
			}
			compareTranscript(t, filepath.Join("testdata/journals", name+".txt"), events)
			continueConversation(t, store, id, events, name == "damaged")
		})
	}
	for _, kind := range theKinds {
		if !seen[kind] {
			t.Errorf("no journal holds an event %s", kind)
		}
	}
}

// copyHome makes a copy of a home, which may be written to.
func copyHome(t *testing.T, from string) (journal.Store, p.ConversationID) {
	t.Helper()
	home := t.TempDir()
	if err := os.CopyFS(home, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	store := file.New(home, file.Options{})
	list, err := store.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%d conversations, %v", len(list), err)
	}
	return store, p.ConversationID(list[0].ID)
}

// readAll reads a conversation as somebody who only looks.
func readAll(t *testing.T, store journal.Store, id p.ConversationID) []p.Event {
	t.Helper()
	v, err := store.View(t.Context(), string(id))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	var all []p.Event
	for {
		recs, err := v.Read(t.Context(), uint64(len(all)), 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(recs) == 0 {
			return all
		}
		for _, r := range recs {
			body, err := p.DecodeBody(r.Kind, r.Body)
			if err != nil {
				t.Fatalf("event %d: %v", r.Seq, err)
			}
			if again, err := json.Marshal(body); err != nil || !within(decode(t, r.Body), decode(t, again)) {
				t.Errorf("event %d: something is not read: recorded is\n%s, read is\n%s", r.Seq, r.Body, again)
			}
			all = append(all, p.Event{Seq: p.Seq(r.Seq), Time: r.Time, Turn: p.TurnID(r.Turn), Body: body})
		}
	}
}

func decode(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// within reports whether everything that part holds is in whole as well.
func within(part, whole any) bool {
	switch part := part.(type) {
	case map[string]any:
		w, ok := whole.(map[string]any)
		for key, v := range part {
			ok = ok && within(v, w[key])
		}
		return ok
	case []any:
		w, ok := whole.([]any)
		ok = ok && len(w) == len(part)
		for i := range part {
			ok = ok && within(part[i], w[i])
		}
		return ok
	}
	return part == whole
}

func compareTranscript(t *testing.T, golden string, events []p.Event) {
	t.Helper()
	var tr transcript.Transcript
	recorded := map[string]bool{} // texts that are not of this version
	for _, e := range events {
		tr.Apply(e)
		if n, ok := e.Body.(*p.Notice); ok {
			recorded[n.Text] = true
		}
	}
	got := fmt.Sprintf("title %q, turn %d, active %t, usage %d, %d events\n", tr.Title, tr.Turn, tr.Active, tr.Usage.Total, len(events))
	for _, it := range tr.Items {
		got += line(it, recorded) + "\n"
	}
	want, err := os.ReadFile(golden)
	if os.IsNotExist(err) && *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("the transcript (-then +now):\n%s", d)
	}
}

var statusWords = map[transcript.Status]string{
	transcript.Open: "open", transcript.Asking: "asking", transcript.Done: "done",
	transcript.Failed: "failed", transcript.Interrupted: "interrupted", transcript.Declined: "denied",
}

// line shows an item in what was recorded, without the words of this version.
func line(it *transcript.Item, recorded map[string]bool) string {
	s := fmt.Sprintf("%s %d %s %s", it.ID, it.Turn, it.Kind, statusWords[it.Status])
	add := func(name, value string) {
		if value == "" {
			return
		}
		if n := len(value); n > 300 {
			value = fmt.Sprintf("%s… (%d bytes)", value[:300], n)
		}
		s += fmt.Sprintf(" %s=%q", name, value)
	}
	if slices.Contains([]transcript.Kind{transcript.User, transcript.Message, transcript.Reasoning}, it.Kind) || recorded[it.Text] {
		add("text", it.Text)
	}
	add("tool", it.Tool)
	add("arguments", it.Arguments)
	add("command", strings.Join(it.Command, " "))
	add("cwd", it.Cwd)
	add("output", it.Output)
	add("signal", it.Signal)
	if it.Kind == transcript.Call || it.Kind == transcript.Background {
		s += fmt.Sprintf(" exit=%d killed=%d background=%d", it.ExitCode, it.Killed, it.Background)
	}
	for _, c := range it.Changes {
		add("file", c.Path)
	}
	if it.Patch != nil {
		s += fmt.Sprintf(" applied=%t unsettled=%t", it.Patch.Applied, it.Patch.Unsettled)
	}
	for _, step := range it.Plan {
		add(step.Status, step.Step)
	}
	return s
}

// continueConversation opens a conversation of an earlier version and takes one
// more turn.
func continueConversation(t *testing.T, store journal.Store, id p.ConversationID, before []p.Event, damaged bool) {
	t.Helper()
	e := enginetest.New(t, enginetest.Options{Store: store})
	snap, err := e.Resume(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	w := e.Watch(id, snap.Last)
	if snap.Active {
		e.Must(id, p.Interrupt{})
		w.Expect("turn_ended interrupted")
	}
	e.Say(id, "and now?")
	r := e.Request()
	if lines := r.Inputs(); lines[len(lines)-1] != "user and now?" {
		t.Errorf("the model is sent %q", lines)
	}
	for _, it := range r.Prompt.Items {
		if it.Kind == p.PromptCall && !slices.ContainsFunc(r.Prompt.Items, func(o *p.PromptItem) bool { return o.Kind == p.PromptOutput && o.Call == it.Call }) {
			t.Errorf("call %s has no output", it.Call)
		}
	}
	r.Answer("Nothing changed.")
	w.Expect("turn_ended completed")
	if damaged { // its records were numbered anew where some were lost
		return
	}
	after := readAll(t, store, id)
	if d := cmp.Diff(before, after[:len(before)]); d != "" {
		t.Errorf("what was recorded (-before +after):\n%s", d)
	}
}
