package draw

import (
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/surface/tui/theme"
	"github.com/fermata-agent/fermata/internal/transcript"
)

// Each item is taken once, when it and what came before it is finished. A background command keeps
// nothing back.
func TestTake(t *testing.T) {
	v := NewView(theme.New(theme.Options{}))
	v.SetSize(60, 20)
	put := func(id string, kind transcript.Kind, status transcript.Status) *transcript.Item {
		it := &transcript.Item{ID: id, Kind: kind, Status: status, Text: "text of " + id, Command: []string{"do", id}}
		if kind != transcript.Call && kind != transcript.Background {
			it.Command = nil
		}
		v.Put(it)
		return it
	}
	now := time.Unix(1e9, 0)
	expect := func(want ...string) {
		t.Helper()
		got := strings.Join(v.Take(now), "\n")
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("taken %q, without %q", got, part)
			}
		}
		if len(want) == 0 && got != "" || strings.Count(got, "text of")+strings.Count(got, "do ") != len(want) {
			t.Errorf("taken %q, want %q", got, want)
		}
	}
	put("a", transcript.User, transcript.Done)
	expect("text of a")
	expect()
	call := put("b", transcript.Call, transcript.Open)
	put("c", transcript.Message, transcript.Done)
	expect() // what came before is open
	if v.Height(now) == 0 || !strings.Contains(strings.Join(v.Rest(now), "\n"), "text of c") {
		t.Error("what is not taken is not shown")
	}
	call.Status = transcript.Done
	v.Put(call)
	expect("do b", "text of c")
	job := put("j", transcript.Background, transcript.Open)
	put("d", transcript.Message, transcript.Done)
	expect("text of d")
	v.Put(call) // it has changed again, too late
	expect()
	job.Status = transcript.Done
	v.Put(job)
	expect("do j")
	if !v.Empty() || v.Height(now) != 0 {
		t.Error("something is left")
	}
	v.Reset()
	put("a", transcript.User, transcript.Done) // of another conversation
	expect("text of a")
}
