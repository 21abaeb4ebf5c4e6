package main

import (
	"os"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/model/modeltest"
	"github.com/fermata-agent/fermata/internal/model/wirecheck"
	p "github.com/fermata-agent/fermata/protocol"
)

// A run tells people of a model of which nothing is known, and a list says what was used.
func TestUsageOfAConversation(t *testing.T) {
	t.Parallel()
	s := newSite(t, wirecheck.Responses, "", modeltest.Respond(modeltest.Say("one"), cost(10, 1)), modeltest.Respond(modeltest.Say("two"), cost(20, 2)))
	_, errs, _ := s.run("exec", "--json", "first")
	if strings.Count(errs, "model_context_window") != 1 {
		t.Errorf("the warning: %s", errs)
	}
	id := s.conversation()
	out, errs, _ := s.run("exec", "resume", id, "second")
	if strings.Contains(out+errs, "model_context_window") || !strings.Contains(errs, "20 tokens in, 2 out") {
		t.Errorf("resumed: %s%s", out, errs)
	}
	contains(t, "the list", s.must("list"), "33 tokens")
	contains(t, "the list in JSON", s.must("list", "--json"), `"total":33`)
}

// The price of a known model is shown, and the effort that it likes is asked for.
func TestCostAndEffortOfAKnownModel(t *testing.T) {
	t.Parallel()
	s := newSite(t, wirecheck.Responses, "", modeltest.Respond(modeltest.Say("one"), cost(1_000_000, 100_000)))
	out, errs, _ := s.run("exec", "-m", "gpt-5", "--json", "first")
	contains(t, "the usage", out, `"cost_usd":`)
	if strings.Contains(errs, "model_context_window") {
		t.Errorf("a known model: %s", errs)
	}
	contains(t, "the request", string(s.srv.Wait(1).Raw), `"effort":"medium"`)
	contains(t, "the list", s.must("list"), ", $")
	contains(t, "the list in JSON", s.must("list", "--json"), `"cost_usd":`)
}

// kill -9 during a compaction leaves the history as it was, and the next message is answered.
func TestCompactionSurvivesKill(t *testing.T) {
	t.Parallel()
	onEveryWire(t, func(t *testing.T, w wirecheck.Wire) {
		s := newSite(t, w, "", modeltest.Respond(modeltest.Say("remembered"), modeltest.Usage(p.Usage{Input: 9_500, Output: 5, Total: 9_505})))
		stalls := true
		s.srv.Otherwise(modeltest.From(func(req *modeltest.Request) modeltest.Reply {
			if strings.Contains(req.Items[len(req.Items)-1].Text, "Summarise this conversation") {
				if stalls {
					stalls = false
					return modeltest.Respond(modeltest.Say("half a summ"), modeltest.Stall())
				}
				return modeltest.Respond(modeltest.Say("the summary"))
			}
			return modeltest.Respond(modeltest.Say("answered"))
		}))
		s.must("exec", "-c", "model_context_window=10000", "the number is 4711 "+strings.Repeat("x ", 2000))
		id := s.conversation()
		run := s.start("exec", "resume", id, "and now?")
		s.srv.Wait(2) // the summary is asked for
		run.signal(os.Kill)
		run.code()
		show := s.must("show", id)
		if strings.Contains(show, "half a summ") {
			t.Errorf("half a summary is shown:\n%s", show)
		}
		out, errs, code := s.run("exec", "resume", id, "once more")
		if code != 0 || strings.TrimSpace(out) != "answered" {
			t.Fatalf("exit code %d: %s%s", code, out, errs)
		}
		contains(t, "fsck", s.must("fsck", id), id)
		summary := string(s.srv.Wait(3).Raw)
		if !strings.Contains(summary, "4711") || !strings.Contains(summary, "remembered") || strings.Contains(summary, "half a summ") {
			t.Errorf("the history was not as before: %s", summary)
		}
		contains(t, "the request", string(s.srv.Wait(4).Raw), "4711")
	})
}

// Another model gets its own default effort, unless somebody chose one.
func TestEffortOfAnotherModel(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags []string
		then  string // in the request to the second model
		back  string // in the request to the first model again
	}{
		"default":    {nil, "", `"effort":"medium"`},
		"chosen":     {[]string{"-c", "model_reasoning_effort=high"}, `"effort":"high"`, `"effort":"high"`},
		"chosen low": {[]string{"-c", "model_reasoning_effort=low"}, `"effort":"low"`, `"effort":"low"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, wirecheck.Responses, "")
			s.srv.Otherwise(modeltest.Respond(modeltest.Say("so")))
			s.must(append([]string{"exec", "-m", "gpt-5.5", "one"}, tt.flags...)...)
			id := s.conversation()
			s.must("exec", "resume", id, "-m", "gpt-4.1", "two")
			s.must("exec", "resume", id, "-m", "gpt-5.5", "three")
			for i, want := range []string{"", tt.then, tt.back} {
				raw := string(s.srv.Wait(i + 1).Raw)
				if i > 0 && (!strings.Contains(raw, want) || want == "" && strings.Contains(raw, `"effort"`)) {
					t.Errorf("request %d: want %q in %s", i+1, want, raw)
				}
			}
		})
	}
}
