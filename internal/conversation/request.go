package conversation

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/history"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/turn"
	p "github.com/fermata-agent/fermata/protocol"
)

// startModel asks the model. What it says goes to the journal, unless it is a summary:
// that is no part of the conversation before it is whole.
func (o *owner) startModel(id p.TurnID, b p.ModelRequested) {
	scope := o.journal.Open(fmt.Sprintf("%d.%d", id, b.Response))
	o.model = scope
	var to model.Sink = &sink{conv: o.conv, id: p.ItemID{Turn: id, Response: b.Response}, scope: scope}
	var summary *summarySink
	if b.Compact {
		summary = &summarySink{}
		to = summary
	}
	prompt, settings, client := o.prompt(b), o.state.TurnSettings, o.cfg.Model
	await := o.await
	o.work(id, func(ctx context.Context) (h turn.Input) {
		done := turn.ModelDone{Response: b.Response}
		defer scope.Seal()
		defer o.guard(func(err *p.Error) { done.Error = err; h = done })
		if err := await.tools(ctx, o.conv, id, func() { prompt = o.prompt(b) }); err != nil {
			done.Error = &p.Error{Kind: p.ErrorTools, Message: err.Error()}
			return done
		}
		c, err := client(settings)
		if err != nil {
			done.Error = asError(err)
			return done
		}
		end, err := c.Stream(ctx, prompt, to)
		done.Usage = end.Usage
		if summary != nil {
			done.Summary = strings.Join(summary.texts, "\n\n")
		}
		if err != nil {
			done.Error = asError(err)
		}
		return done
	})
}

// A summarySink keeps what the model says when it is asked for a summary.
type summarySink struct{ texts []string }

func (*summarySink) Delta(int, p.DeltaKind, string) {}

func (s *summarySink) Done(_ int, body p.Body) {
	if m, ok := body.(*p.AssistantMessage); ok && !m.Partial {
		s.texts = append(s.texts, m.Text)
	}
}

// prompt is what a request says. One for a summary keeps the tools, since services
// refuse calls in a history without them, and since it begins like the requests before it.
func (o *owner) prompt(b p.ModelRequested) model.Prompt {
	s := o.state.TurnSettings
	pr := model.Prompt{
		Model: s.Model, Instructions: o.instructions(), Items: o.state.History.Items(), Tools: o.toolSpecs(),
		Effort: o.effort(), Summary: s.Summary, Verbosity: s.Verbosity,
		CacheKey: string(o.state.ID), OutputSchema: s.OutputSchema, UnknownCalls: o.state.UnknownCalls, Window: o.state.Window(),
	}
	if b.Compact {
		pr.NoCalls, pr.OutputSchema = true, nil
		pr.Items = append(pr.Items[:len(pr.Items):len(pr.Items)], &p.PromptItem{Kind: p.PromptUser, Content: p.Text(summarise)})
	}
	if b.Limit > 0 {
		pr.Items = history.Fit(pr.Items, max(b.Limit-o.overhead, 1))
	}
	return pr
}

// instructions are those of the settings, else the built-in ones, and what is
// added to both.
func (o *owner) instructions() string {
	s := o.state.TurnSettings
	text := s.Instructions
	if text == "" && o.cfg.Instructions != nil {
		text = o.cfg.Instructions(s)
	}
	if s.Developer == "" {
		return text
	}
	return strings.TrimSuffix(text, "\n") + "\n\n" + s.Developer
}

// effort is the one that the settings name, else what suits the model.
func (o *owner) effort() string {
	s := o.state.TurnSettings
	if s.Effort == "" && o.cfg.Effort != nil {
		return o.cfg.Effort(s)
	}
	return s.Effort
}

// toolSpecs are the tools that the model is offered. Those that look up what is no
// longer sent are offered when there is such a thing.
func (o *owner) toolSpecs() []model.ToolSpec {
	specs := tool.Offered(o.tools)
	if o.state.History.HasLookup() {
		specs = append(specs, tool.Offered(o.lookup())...)
	}
	return specs
}

// summarise asks for what replaces the history in a compaction.
const summarise = "Summarise this conversation so that you can continue it from the summary alone. Use these headings, each with what belongs to it, or none:\n" +
	"## Goal\n## The user's constraints (word for word)\n## Decisions, and why\n## Files changed, and how\n## Commands that work\n" +
	"## Last failing test or command, with its output\n## Next step\n" +
	"Be exact about names, paths and values. Call no tool. Answer with the summary only."

// requestRoom is what is known of how long requests are, and may be with some settings.
func (o *owner) requestRoom(s p.Settings) turn.Room {
	window := o.state.WindowOf(s)
	if window == 0 {
		window = o.cfg.DefaultWindow
	}
	room := turn.Room{
		Size:   func(added ...[]p.Content) int64 { return o.state.Tokens(o.overhead, added...) },
		Window: window, Overhead: o.overhead, Keep: o.cfg.KeepTokens,
		LocalSummary: func() string { return o.state.History.LocalSummary(localSummary) },
		LeastSummary: min(leastSummary, int(o.state.History.Grown()/1000)),
	}
	if window > 0 {
		room.Keep = min(room.Keep, max(window/5, 1))
	}
	grown := history.Tokens(o.state.History.Grown())
	room.Grown = grown > window/10 || grown > 0 && o.state.History.Compacted() == 0
	return room
}

// leastSummary is how many bytes a summary of much has at least: one that is shorter has left out what matters.
const leastSummary = 400

// localSummary is how many tokens a summary has that is made from the records.
const localSummary = 2000

// lookup are the tools that look up what is no longer sent.
func (o *owner) lookup() []tool.Tool {
	events := readEvents(o.conv.Reader())
	return []tool.Tool{&tool.SearchHistory{Events: events}, &tool.ReadHistory{Events: events}}
}

// readEvents gives what is recorded.
func readEvents(r journal.Reader) tool.Events {
	return func(ctx context.Context) iter.Seq2[p.Event, error] {
		return func(yield func(p.Event, error) bool) {
			after := uint64(0)
			for {
				recs, err := r.Read(ctx, after, 500)
				if err != nil {
					yield(p.Event{}, err)
					return
				}
				if len(recs) == 0 {
					return
				}
				for _, rec := range recs {
					after = rec.Seq
					body, err := p.DecodeBody(rec.Kind, rec.Body)
					if err != nil {
						continue // of a later version
					}
					if !yield(p.Event{Seq: p.Seq(rec.Seq), Turn: p.TurnID(rec.Turn), Time: rec.Time, Body: body}, nil) {
						return
					}
				}
			}
		}
	}
}

// startHold starts the clock of a turn that waits for a limit and resumes by itself.
func (o *owner) startHold() {
	h := o.state.Hold
	stopTimer(&o.hold)
	if h == nil || !h.Resume || h.Until.IsZero() {
		return
	}
	o.hold = time.NewTimer(min(max(0, time.Until(h.Until)), holdCheck))
}

// holdCheck is how often the clock is looked at: it runs on while the machine sleeps,
// and a timer does not.
const holdCheck = time.Minute

func (o *owner) holdDue() {
	o.hold = nil
	h := o.state.Hold
	if h == nil {
		return
	}
	if time.Now().Before(h.Until) {
		o.startHold()
		return
	}
	o.step(turn.HoldDue{})
}
