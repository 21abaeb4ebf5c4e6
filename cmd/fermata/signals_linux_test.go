package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
	p "github.com/fermata-agent/fermata/protocol"
)

// stops are the signals that stop a turn, and the exit codes that tell.
var stops = []struct {
	name   string
	signal syscall.Signal
	code   int
}{
	{"SIGINT", syscall.SIGINT, exitInterrupted},
	{"SIGTERM", syscall.SIGTERM, exitTerminated},
	{"SIGHUP", syscall.SIGHUP, 129},
}

// A phase is something a turn can be in the middle of.
type phase struct {
	name     string
	prompt   string
	terminal bool
	ready    func(pl *place, pr *process, id string)
	end      string   // of the line that tells how it ended
	shown    []string // on stderr
	told     []string // to the model, in the next turn
}

var phases = []phase{
	{
		name: "text", prompt: "talk 500", end: ` · reply kept`,
		ready: func(pl *place, _ *process, id string) {
			pl.awaitText(id, "word5 ")
		},
		shown: []string{"[demo] word1 word2 word3 word4 word5 ", " […partial]\n"},
		told:  []string{"You had asked: talk 500", "[demo] word1 word2 word3 word4 word5", "on purpose", "No command was interrupted", "cut off where it ends"},
	},
	{
		name: "text on a terminal", prompt: "talk 500", end: ` · reply kept`, terminal: true,
		ready: func(pl *place, pr *process, _ string) {
			eventually(pl.t, "words are on the screen", func() bool { return pr.err.has("word5 ") })
		},
		shown: []string{"[demo] word1 word2 word3 word4 word5 ", " […partial]\n"},
		told:  []string{"[demo] word1 word2 word3 word4 word5", "on purpose"},
	},
	{
		name: "command", prompt: "run: for i in 1 2 3; do echo line-$i; done; sleep 600", end: ` · 1 command, \d+ process(es)? killed`,
		ready: func(pl *place, pr *process, _ string) {
			eventually(pl.t, "the command prints", func() bool { return pr.err.has("  line-3\n") })
		},
		shown: []string{"$ for i in 1 2 3", "  line-1\n  line-2\n  line-3\n", "  (interrupted, "},
		told:  []string{"Interrupted: `for i in 1 2 3; do echo line-$i; done; sleep 600`", "  line-1\n  line-2\n  line-3\n", "may have had effects", "on purpose"},
	},
	{
		name: "waiting for the model", prompt: "wait 60", end: ``,
		ready: func(pl *place, _ *process, id string) {
			pl.awaitEvent(id, "the model is asked", func(b p.Body) bool { _, ok := b.(*p.ModelRequested); return ok })
		},
		told: []string{"You had asked: wait 60", "No command was interrupted", "on purpose"},
	},
}

func TestSignalStopsTheTurn(t *testing.T) {
	t.Parallel()
	for i, ph := range phases {
		for j, stop := range stops {
			if !longtest.On() && j != i%len(stops) { // a plain run has each phase, and each signal
				continue
			}
			t.Run(ph.name+" "+stop.name, func(t *testing.T) {
				t.Parallel()
				pl := newPlace(t)
				pr := ph.begin(pl)
				id := pl.conversation()
				ph.ready(pl, pr, id)
				tree := below(pr.cmd.Process.Pid)
				pr.signal(stop.signal)
				if code := pr.code(); code != stop.code {
					t.Errorf("exit code %d, want %d", code, stop.code)
				}
				pl.noneLeft(t, tree)
				ph.check(t, pr, id)
				contains(t, "what the model was told", pl.sound(id), ph.told...)
				if list := pl.conversations(); len(list) != 1 || list[0].Turns != 2 {
					t.Errorf("conversations %+v, want one of two turns", list)
				}
			})
		}
	}
}

func (ph phase) begin(pl *place) *process {
	if ph.terminal {
		return pl.startOnTerminal("exec", "--demo", ph.prompt)
	}
	return pl.start("exec", "--demo", ph.prompt)
}

// check looks at what was printed: no answer, and at the end one line that
// tells how the turn ended, and one how to go on.
func (ph phase) check(t *testing.T, pr *process, id string) {
	t.Helper()
	if out := pr.out.String(); out != "" {
		t.Errorf("stdout %q, want nothing: there is no answer", out)
	}
	errs := pr.err.String()
	contains(t, "stderr", errs, ph.shown...)
	want := `(?:^|\n)fermata: interrupted after \d+(\.\d)? m?s` + ph.end + `\nto resume: fermata exec resume ` + id + ` PROMPT\n$`
	if !regexp.MustCompile(want).MatchString(errs) || strings.Count(errs, "fermata: ") != 1 {
		t.Errorf("stderr\n%s\nwant at its end, and only there,\n%s", errs, want)
	}
}

// stubborn is a command that takes notice of no polite signal.
const stubborn = `run: trap 'echo no' TERM INT HUP; echo ready; while :; do sleep 600; done`

// One who asks again, while a stop takes its time, is obeyed at once, without last words.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pr := pl.start("exec", "--demo", "-c", "stop_grace_ms=500", stubborn)
	id := pl.conversation()
	pl.awaitText(id, "ready")
	tree := below(pr.cmd.Process.Pid)
	pr.signal(syscall.SIGINT)
	eventually(t, "it is gone", func() bool {
		_ = pr.cmd.Process.Signal(syscall.SIGTERM) // until one is late enough to be the second
		select {
		case <-pr.done:
			return true
		default:
			return false
		}
	})
	if code := pr.code(); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	if pr.err.has("fermata: interrupted") || pr.err.has("to resume") {
		t.Errorf("it took its time:\n%s", pr.err.String())
	}
	pl.noneLeft(t, tree)
	contains(t, "what the model was told", pl.sound(id), "Interrupted: `trap", "  ready\n")
}

// Signals that come together are one wish, as from timeout(1), which sends two. They
// are different here because two equal ones may arrive as one; which is first is up to
// the system.
func TestSignalsTogetherAreOne(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	pr := pl.start("exec", "--demo", "--json", stubborn)
	id := pl.conversation()
	pl.awaitText(id, "ready")
	pr.signal(syscall.SIGTERM)
	pr.signal(syscall.SIGHUP)
	if code := pr.code(); code != 143 && code != 129 {
		t.Errorf("exit code %d, want 129 or 143", code)
	}
	const last = `{"type":"turn.failed","error":{"message":"turn interrupted"}}` + "\n"
	if out := pr.out.String(); !strings.HasSuffix(out, last) {
		t.Errorf("stdout\n%s\nwant at its end\n%s", out, last)
	}
	contains(t, "what the model was told", pl.sound(id), "Interrupted: `trap", "on purpose")
}

// Nobody reads: the turn is stopped all the same, and says so with its code.
func TestStopWhileNobodyReads(t *testing.T) {
	t.Parallel()
	for _, stop := range stops {
		t.Run(stop.name, func(t *testing.T) {
			t.Parallel()
			pl := newPlace(t)
			pr := pl.startUnread("exec", "--demo", `run: trap "" TERM; yes | head -n 1000; echo all of it; sleep 600`)
			id := pl.conversation()
			pl.awaitText(id, "all of it")
			tree := below(pr.cmd.Process.Pid)
			if len(tree) == 0 {
				t.Fatal("nothing runs, so this proves nothing")
			}
			pr.signal(stop.signal)
			if code := pr.code(); code != stop.code {
				t.Errorf("exit code %d, want %d", code, stop.code)
			}
			pl.noneLeft(t, tree)
			contains(t, "what the model was told", pl.sound(id), "all of it", "on purpose")
		})
	}
}
