package tui

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/longtest"
	wire "github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/native"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

var (
	seed  = flag.Uint64("seed", 0, "of the random test; 0 takes a few fixed ones")
	storm = flag.Int("storm", longtest.Default(10_000, 4000), "how many things happen in the random test")
)

// A dice is shared by what runs at the same time.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

func (d *dice) pick(list []string) string { return list[d.n(len(list))] }

// snippets are what people, models and commands say.
var snippets = []string{
	"hello ", "a\n", "# title\n", "```go\nfunc f() {}\n", "```\n", "- item\n", "漢字かな ", "🙂👩‍👩‍👧 ", "\x1b[31mred\x1b[0m", "\r50%", "\t", "|a|b|\n|-|-|\n",
	strings.Repeat("long", 60), "\x00\x07", "é\u0301", "> quote\n", "@file ", "/help", "!ls", "\u202eback", "end.\n\n", "निधि ⚠️ ", "/w/cat.png",
}

// An improviser is a model and a tool that do as they please.
type improviser struct{ *dice }

const lastQuestion = "the last question"

func (im improviser) Stream(ctx context.Context, pr wire.Prompt, sink wire.Sink) (wire.End, error) {
	usage := &p.Usage{Input: int64(im.n(5000)), Output: 10, Total: 100}
	last := pr.Items[len(pr.Items)-1]
	if last.Kind == p.PromptUser && strings.Contains(p.PlainText(last.Content), lastQuestion) {
		sink.Done(0, &p.AssistantMessage{Text: "the last answer"})
		return wire.End{Usage: usage}, nil
	}
	var text string
	for range im.n(30) {
		piece := im.pick(snippets)
		text += piece
		sink.Delta(0, p.DeltaMessage, piece)
		if err := im.nap(ctx, 40); err != nil {
			return wire.End{}, err
		}
	}
	switch im.n(8) {
	case 0:
		return wire.End{}, enginetest.Broken()
	case 1:
		return wire.End{}, enginetest.Refused()
	}
	next := 0
	if text != "" {
		sink.Done(0, &p.AssistantMessage{Text: text})
		next++
	}
	if im.n(3) == 0 {
		sink.Done(next, &p.Reasoning{Text: im.pick(snippets)})
		next++
	}
	for range im.n(3) {
		sink.Done(next, &p.ToolCall{WireID: fmt.Sprintf("w%d", next), Kind: p.CallFunction, Name: "work", Arguments: "{}"})
		next++
	}
	return wire.End{Usage: usage}, im.nap(ctx, 30)
}

// nap waits up to so many milliseconds.
func (im improviser) nap(ctx context.Context, ms int) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Duration(im.n(ms)) * time.Millisecond):
		return nil
	}
}

func (im improviser) Spec() wire.ToolSpec { return wire.ToolSpec{Name: "work", Kind: p.CallFunction} }
func (im improviser) ReadOnly() bool      { return false }

func (im improviser) Run(ctx context.Context, call tool.Call) tool.Result {
	if call.Grant == "" && im.n(3) == 0 {
		return tool.Result{Ask: &p.ApprovalRequested{Kind: p.ApproveCommand, Command: []string{"rm", im.pick(snippets)}, Reason: im.pick(snippets)}}
	}
	var out strings.Builder
	started := p.CommandStarted{Call: call.ID, Command: []string{"bash", "-lc", im.pick(snippets)}, Cwd: "/w"}
	if err := call.Host.Record(ctx, &started); err != nil {
		return tool.Result{Output: p.ToolOutput{Aborted: true}}
	}
	for range im.n(20) {
		piece := im.pick(snippets)
		out.WriteString(piece)
		call.Host.Write(p.DeltaStdout, piece)
		if im.nap(ctx, 50) != nil {
			return tool.Result{Output: p.ToolOutput{Aborted: true, Command: &p.CommandResult{ExitCode: -1, Output: out.String(), Killed: 1}}}
		}
	}
	return tool.Result{Output: p.ToolOutput{Output: out.String(), Command: &p.CommandResult{ExitCode: im.n(2), Output: out.String()}}}
}

var stormKeys = []string{
	"a", "b", "y", "n", "s", "x", "/", "!", "@", "space", "enter", "enter", "tab", "alt+enter", "ctrl+s", "esc", "esc", "up", "down", "left", "right",
	"pgup", "pgdown", "home", "end", "ctrl+home", "ctrl+end", "backspace", "delete", "ctrl+r", "ctrl+u", "ctrl+w", "ctrl+k", "ctrl+y", "ctrl+j", "ctrl+o",
	"ctrl+t", "ctrl+l", "ctrl+g", "ctrl+c", "ctrl+d", "shift+up", "shift+down", "q", "j", "k", "1", "ctrl+_", "alt+b", "alt+f", "ctrl+left", "shift+enter",
}

var stormLines = []string{
	"/resume", "/new", "/fork", "/compact", "/diff", "/undo-turn", "/undo-turn 1", "/model", "/model other", "/approvals", "/ps", "/kill 1", "/status", "/help",
	"!echo", "what now", "/nonsense", "multi\nline",
}

// A tempest is one run of the random test.
type tempest struct {
	*dice
	t *testing.T
	e *enginetest.Engine
	d *driver
}

func (s *tempest) engine(store func(*enginetest.Options)) {
	im := improviser{s.dice}
	o := enginetest.Options{Config: func(c *engine.Config) {
		c.Model = native.Model(im)
		c.Tools = []engine.Tool{native.Tool(im)}
	}}
	if store != nil {
		store(&o)
	}
	s.e = enginetest.New(s.t, o)
}

// start begins a program: with a conversation that is there, or a new one.
func (s *tempest) start() {
	change := func(o *Options) {
		o.History, o.Image = &memory{}, readImage
		o.Files = func(context.Context, string, string) []string { return []string{"a.go", "dir/漢字.txt"} }
		o.Models = func(context.Context) ([]app.ModelRow, error) {
			return []app.ModelRow{{Provider: "test", Model: "puppet"}, {Provider: "test", Model: "other"}}, nil
		}
		o.Changes = func(context.Context, string) (string, error) { return "--- a\n+++ b\n", nil }
		o.Branch = func(context.Context, string) string { return "main" }
		o.Undo = func(_ context.Context, _ p.ConversationID, turn p.TurnID) (*app.Undo, error) {
			return &app.Undo{Turn: turn, Files: s.n(2), Diff: "-a\n+b\n", Do: func(context.Context) error { return nil }}, nil
		}
		page, err := s.e.List(s.t.Context(), engine.ListOptions{Limit: 5})
		if err == nil && len(page.Items) > 0 && s.n(3) > 0 {
			o.Resume = page.Items[s.n(len(page.Items))].ID
		}
		o.Pick = s.n(5) == 0
	}
	s.d = drive(s.t, s.e, change)
}

// happen does one thing.
func (s *tempest) happen() {
	d := s.d
	switch k := s.n(100); {
	case k < 60:
		d.step(press(s.pick(stormKeys)))
	case k < 66:
		for _, r := range s.pick(stormLines) {
			d.step(tea.KeyPressMsg{Text: string(r), Code: r})
		}
		d.step(press("enter"))
	case k < 70:
		d.step(tea.PasteMsg{Content: strings.Repeat(s.pick(snippets), 1+s.n(40))})
	case k < 75:
		d.step(tea.WindowSizeMsg{Width: s.n(140), Height: s.n(50)})
	case k < 80:
		d.step(tea.MouseWheelMsg{Button: []tea.MouseButton{tea.MouseWheelUp, tea.MouseWheelDown, tea.MouseLeft}[s.n(3)]})
	case k < 84:
		s.meddle()
	case k < 85:
		d.step(tea.BackgroundColorMsg{})
	case k < 86:
		d.step(tea.ModeReportMsg{Mode: ansi.ModeUnicodeCore, Value: ansi.ModeSetting(s.n(3))})
	default:
		d.wait(time.Duration(s.n(60)) * time.Millisecond)
	}
	if s.n(4) == 0 {
		d.settle()
	}
}

// meddle is another client of the same conversation.
func (s *tempest) meddle() {
	id := s.d.m.conv.ID
	if id == "" {
		return
	}
	ops := []p.Op{
		p.Interrupt{},
		p.UserTurn{Content: p.Text("from elsewhere")},
		p.UserTurn{Content: p.Text("later"), WhenBusy: p.Queue},
		p.UserTurn{Content: []p.Content{{Type: p.ContentImage, ImageURL: "data:x"}}, WhenBusy: p.Queue},
		p.Rename{Title: "t"},
		p.UserTurn{Content: p.Text("instead"), WhenBusy: p.Replace},
	}
	for _, it := range s.d.m.conv.Approvals {
		ops = append(ops, p.Approve{Call: it.Approval.Call, Decision: p.Approved}, p.Approve{Call: it.Approval.Call, Decision: p.Denied})
	}
	op := ops[s.n(len(ops))]
	go func() { _, _ = s.e.Submit(s.t.Context(), id, op) }() // or it is refused
}

// calm brings the program to where a message can be sent, by keys alone.
func (s *tempest) calm() {
	d := s.d
	d.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	for range 60 { // queued messages of others may start turns of their own
		d.wait(time.Second)
		if d.over || d.m.overlay == nil && d.m.ask.Open == nil && !d.m.Busy() && !d.m.Opening() {
			return
		}
		d.press("esc")
		d.press("esc")
	}
	s.t.Fatalf("it is stuck: busy %v, stopping %v, opening %v, screen %T, dialog %v, outbox %+v\n%s",
		d.m.Busy(), d.m.Stopping(), d.m.Opening(), d.m.overlay, d.m.ask.Open != nil, d.m.Out, d.screen())
}

func (s *tempest) restart() {
	if s.d.m.leaving != nil && s.d.m.leaving.ran { // it has shut the engine down
		store := s.e.Store
		s.engine(func(o *enginetest.Options) { o.Store = store })
	}
	s.start()
}

// closed checks that nothing of a turn that has ended is open.
func (s *tempest) closed() {
	tr := s.d.m.conv.Transcript
	for _, it := range tr.Items {
		ended := it.Turn < tr.Turn || !tr.Active
		if (it.Status == transcript.Open || it.Status == transcript.Asking) && ended && it.Turn != 0 {
			s.t.Fatalf("%s %s of turn %d is %s, and the turn has ended", it.Kind, it.ID, it.Turn, it.Status)
		}
	}
}

func (s *tempest) run(steps int) {
	s.engine(nil)
	s.start()
	for range steps {
		s.happen()
		if s.d.over {
			s.restart()
		}
	}
	for s.calm(); s.d.over; s.calm() {
		s.restart()
	}
	s.closed()
	d := s.d
	d.press("ctrl+e")
	for range 50 {
		d.press("ctrl+u", "backspace")
	}
	d.m.comp.SetText("") // a draft of many lines may be left
	d.say(lastQuestion, "enter")
	d.wait(30 * time.Second)
	d.press("end")
	d.sees("the last answer", "ready")
	if r := d.m.result(); !slices.Contains(r.Lines, "to resume: fermata resume "+string(d.m.conv.ID)) {
		s.t.Errorf("it prints %v", r)
	}
}

// Keys, sizes, events and other clients in any order: nothing breaks, nothing
// is stuck, and afterwards a message is answered.
func TestStorm(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4}
	if *seed != 0 {
		seeds = []uint64{*seed}
	}
	defer safetext.Join(false)
	for _, n := range seeds {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tempest{dice: &dice{rng: rand.New(rand.NewPCG(n, n))}, t: t}
				s.run(*storm / len(seeds))
			})
		})
	}
}
