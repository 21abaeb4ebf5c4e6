package tool

import (
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/proc/capture"
	"github.com/fermata-agent/fermata/protocol"
)

// keptBytes is how much of the beginning and of the end of a command's output is
// recorded: 16 MiB in all.
const keptBytes = 8 << 20

// defaultBytes is how much of an output a model is shown if it does not say.
const defaultBytes = 40_000

// An output is what a command prints, passed on and kept.
type output struct {
	host    Host
	capture capture.Capture
	text    [2]decoder
}

func newOutput(h Host) *output {
	return &output{host: h, capture: capture.Capture{Head: keptBytes, Tail: keptBytes}}
}

var kinds = [2]protocol.DeltaKind{proc.Stdout: protocol.DeltaStdout, proc.Stderr: protocol.DeltaStderr}

func (o *output) take(s proc.Stream, b []byte) { o.put(s, o.text[s].decode(b)) }

func (o *output) put(s proc.Stream, text string) {
	if text == "" {
		return
	}
	o.capture.Write(s, []byte(text))
	o.host.Write(kinds[s], text)
}

// flush passes on what an incomplete character at the end held back.
func (o *output) flush() {
	for s := range o.text {
		o.put(proc.Stream(s), o.text[s].rest())
	}
}

// command is how the command ended, with what it printed.
func (o *output) command(r proc.Result) protocol.CommandResult {
	c := result(r)
	captured(&c, &o.capture)
	return c
}

// captured puts what was printed into a result.
func captured(c *protocol.CommandResult, from *capture.Capture) {
	c.Output, c.Omitted = from.Text(), from.Omitted()
	if c.Omitted > 0 {
		return // the ranges count what was left out
	}
	for _, rg := range from.StderrRanges() {
		c.Stderr = append(c.Stderr, [2]int{int(rg.Start), int(rg.End)})
	}
}

// Shorten returns what a model is shown of a text, the whole of which is recorded with
// the output of a call.
func Shorten(call Call, text string, omitted int64) string {
	return show(call, protocol.CommandResult{Output: text, Omitted: omitted}, defaultBytes)
}

// outputPath is how read_file names the recorded output of a call.
const outputPath = "output:"

// show is what a model is shown of an output: at most n bytes. Where something
// is missing it gets a hint how to read it.
func show(call Call, c protocol.CommandResult, n int) string {
	if hint := patchHint(c); hint != "" {
		return strings.TrimSuffix(protocol.ValidText(protocol.ShortenTo(c.Output, n, c.Omitted)), "\n") + "\n" + hint
	}
	if len(c.Output) <= n {
		return protocol.ValidText(c.Output)
	}
	return strings.TrimSuffix(protocol.ShortenTo(c.Output, n, c.Omitted), "\n") +
		fmt.Sprintf("\n[To read the omitted part, call read_file with path %q and an offset.]", outputPath+call.ID.String())
}

// patchHint is for models that call apply_patch in the middle of a script, where it
// cannot be carried out.
func patchHint(c protocol.CommandResult) string {
	if c.ExitCode == 0 || !strings.Contains(c.Output, "apply_patch: command not found") && !strings.Contains(c.Output, "apply_patch: not found") {
		return ""
	}
	return "[apply_patch is a tool, not a program. Call the tool, or make apply_patch <<'EOF' the only command of a call.]\n"
}
