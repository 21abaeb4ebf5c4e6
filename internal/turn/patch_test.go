package turn

import (
	"testing"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

// Of a patch it is known what it did, so the model is told that and not that it
// may have had effects.
func TestAbortedPatches(t *testing.T) {
	call := id(1, 1, 0)
	crash := func(r p.PatchResult) Lost {
		return Lost{Crash: true, Patches: map[p.CallID]p.PatchResult{call: r}}
	}
	cut := func(reason p.EndReason, r p.PatchResult, text string) []p.Body {
		out := &p.ToolOutput{Call: call, Failed: true, Aborted: true, Elapsed: 2 * time.Second, Patch: &r, Output: text}
		events := []p.Body{out, ended(reason)}
		if reason == p.Crashed {
			events = append([]p.Body{&p.StopRequested{Reason: p.Crashed}}, events...)
		}
		return events
	}
	for _, tt := range []struct {
		name  string
		given []p.Body
		in    Input
		want  []p.Body
	}{
		{
			"stopped before the commit", stopped(toolRuns()),
			ToolDone{Output: p.ToolOutput{Call: call, Aborted: true, Patch: &p.PatchResult{}}},
			cut(p.Interrupted, p.PatchResult{}, "aborted after 2.0 s: the user stopped the turn while this ran. Nothing of the patch was applied."),
		},
		{
			"killed after the commit", toolRuns(), crash(p.PatchResult{Applied: true, Summary: "left alone: x"}),
			cut(p.Crashed, p.PatchResult{Applied: true, Summary: "left alone: x"},
				"aborted after 2.0 s: the program was killed while this ran. The patch was applied, all of it.\nleft alone: x"),
		},
		{
			"killed before the commit", toolRuns(), crash(p.PatchResult{}),
			cut(p.Crashed, p.PatchResult{}, "aborted after 2.0 s: the program was killed while this ran. Nothing of the patch was applied."),
		},
		{
			"killed, and the disk is gone", toolRuns(), crash(p.PatchResult{Unsettled: true}),
			cut(p.Crashed, p.PatchResult{Unsettled: true},
				"aborted after 2.0 s: the program was killed while this ran. Whether the patch was applied is not known yet: look at the files."),
		},
	} {
		same(t, tt.name, tt.want, decide(t, fold(tt.given...), tt.in))
	}
}

// The diff of the turn follows the output, also in a turn that is stopping.
func TestDiffFollowsTheOutput(t *testing.T) {
	out := p.ToolOutput{Call: id(1, 1, 0), Elapsed: 1, Patch: &p.PatchResult{Applied: true}}
	diff := &p.TurnDiff{Diff: "d"}
	same(t, "going on", []p.Body{&out, diff, &p.ModelRequested{Response: 2}},
		decide(t, fold(toolRuns()...), ToolDone{Output: out, Diff: diff}))
	same(t, "stopping", []p.Body{&out, diff, ended(p.Interrupted)},
		decide(t, fold(stopped(toolRuns())...), ToolDone{Output: out, Diff: diff}))
}
