package exec

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/safetext"
	p "github.com/fermata-agent/fermata/protocol"
)

var escape = regexp.MustCompile("\x1b\\[[0-9;]*m")

// busy is a turn with something of everything that is shown.
func busy(t *testing.T, change func(*Options)) *run {
	t.Helper()
	r := start(t, change)
	m := r.e.Request()
	m.Message("I look first")
	m.Call("p", "work", "{}")
	m.Call("a", "work", "{}")
	m.Call("b", "work", "{}")
	m.End()
	plan := r.e.Run()
	steps := []p.PlanStep{{Step: "a", Status: "completed"}, {Step: "b", Status: "in_progress"}, {Step: "c", Status: "pending"}}
	_ = plan.Call.Host.Record(t.Context(), &p.PlanUpdated{Call: plan.Call.ID, Plan: steps})
	plan.Finish("Plan updated")
	good := r.e.Run()
	_ = good.Call.Host.Record(t.Context(), &p.CommandStarted{Call: good.Call.ID, Command: []string{"make"}})
	good.Return(p.ToolOutput{Output: "{}", Command: &p.CommandResult{Output: "\x1b[41mred\n"}})
	bad := r.e.Run()
	_ = bad.Call.Host.Record(t.Context(), &p.CommandStarted{Call: bad.Call.ID, Command: []string{"false"}})
	bad.Return(p.ToolOutput{Output: "{}", Command: &p.CommandResult{ExitCode: 1}})
	return r
}

// Colour changes nothing but the colour, and is never put on the answer.
func TestColor(t *testing.T) {
	var bare string
	for _, colored := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := busy(t, func(o *Options) { o.Color = colored })
			r.e.Request().Answer("The answer.")
			<-r.done
			if out := r.out.String(); out != "The answer.\n" {
				t.Errorf("stdout %q", out)
			}
			if !colored {
				bare = r.err.String()
				if strings.Contains(bare, "\x1b") {
					t.Errorf("not asked for: %q", bare)
				}
				return
			}
			got := r.err.String()
			if d := cmp.Diff(bare, escape.ReplaceAllString(got, "")); d != "" {
				t.Errorf("text (-without colour +with):\n%s", d)
			}
			for _, want := range []string{
				"I look first\n", "\x1b[32m  ✓ a\x1b[0m\n", "\x1b[1m  ▸ b\x1b[0m\n", "  · c\n", "\x1b[1m$ make\x1b[0m\n",
				"\x1b[2m  red\x1b[0m\n", "\x1b[2m  (ok, 0 ms)\x1b[0m\n", "\x1b[31m  (exit code 1, 0 ms)\x1b[0m\n",
			} {
				if !strings.Contains(got, want) {
					t.Errorf("%q\nwant in it\n%q", got, want)
				}
			}
		})
	}
}

func TestColorOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) { o.Color = true })
		r.e.Request().Delta("half")
		r.cancel()
		r.want(t, "", "half\x1b[33m […partial]\x1b[0m\n\x1b[33mfermata: interrupted after 0 ms · reply kept\x1b[0m\nto resume: fermata exec resume ID PROMPT\n")
	})
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) { o.Color, o.Ephemeral = true, true })
		r.e.Request().Fail(&p.Error{Kind: p.ErrorUsageLimit, Message: "no credit left"})
		r.want(t, "", "\x1b[31mfermata: failed after 0 ms: no credit left\x1b[0m\n")
	})
}

// A terminal that only prints gets no line that is drawn over.
func TestNoStatusLineOnAPlainTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *Options) { o.ErrTerminal, o.Plain = true, true })
		m := r.e.Request()
		m.Delta("All ")
		synctest.Wait()
		if got := r.err.String(); got != "All " {
			t.Errorf("shown so far: %q", got)
		}
		waitFrames()
		m.Answer("All well.")
		r.want(t, "All well.\n", "All well.\n")
	})
}

// What a model says does not reach the terminal as orders to it; a pipe and a
// file get every byte.
func TestMessagesDoNotSteerTheTerminal(t *testing.T) {
	const evil, harmless = "a\x1b]52;c;cm0gLXJm\x07b\u009b2Jc", "a]52;c;cm0gLXJmb2Jc"
	for _, c := range []struct {
		name, out, err string
		change         func(*Options)
	}{
		{"pipes", evil + "\n", "", nil},
		{"one screen", harmless + "\n· 10 tokens in, 1 out\n", "", func(o *Options) { o.OutTerminal, o.ErrTerminal, o.Plain = true, true, true }},
		{"progress on a screen", evil + "\n", harmless + "\n", func(o *Options) { o.ErrTerminal, o.Plain = true, true }},
		{"answer on a screen", harmless + "\n", "", func(o *Options) { o.OutTerminal = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, c.change)
				r.e.Request().Answer(evil)
				r.want(t, c.out, c.err)
			})
		})
	}
}

func TestWholeCharacters(t *testing.T) {
	const text = "aé€😀"
	for n := range len(text) + 1 {
		cut := text[:n]
		want := strings.ToValidUTF8(cut, "")
		if got := cut[:safetext.Whole(cut)]; got != want {
			t.Errorf("%q: %q, want %q", cut, got, want)
		}
	}
	if n := safetext.Whole("\x80\x80\x80\x80"); n != 4 {
		t.Errorf("rubbish is held back: %d", n)
	}
}
