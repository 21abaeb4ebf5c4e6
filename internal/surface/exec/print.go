package exec

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/hint"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/exec/lines"
	"github.com/fermata-agent/fermata/internal/surface/exec/questions"
	"github.com/fermata-agent/fermata/internal/surface/exec/style"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// How much of a command's output is shown while it runs, and at its end.
const (
	shownLines = 20
	tailLines  = 5
)

// A printer draws the transcript of one turn as lines of text.
type printer struct {
	o    Options
	w    io.Writer // progress
	live bool      // messages are shown as they arrive
	all  bool      // what the user says and how turns end is shown too
	full bool      // nothing is left out: all output, and what the model thought
	tr   transcript.Transcript

	shown   map[string]int  // bytes of each open item that are on screen
	lines   map[string]int  // lines of each command's output that are on screen
	over    map[string]bool // commands whose end is on screen
	calls   callQueue
	pending *transcript.Item // a finished message that may be the answer
	shows   bool             // the status line is on screen
	midLine bool             // the last thing printed did not end its line
}

func newPrinter(o Options) *printer {
	pr := &printer{o: o, w: o.Err, live: o.ErrTerminal, shown: map[string]int{}, lines: map[string]int{}, over: map[string]bool{}}
	if pr.live && o.OutTerminal {
		pr.w = o.Out // one screen: the answer is part of the story
	}
	return pr
}

// Event draws what an event changed. Errors of the progress stream are not
// ours to report: the turn continues without a reader.
func (pr *printer) Event(e p.Event) {
	if d, ok := e.Body.(*p.Delta); ok && !pr.live && (d.Kind == p.DeltaMessage || d.Kind == p.DeltaReasoning) {
		return // shown when it is whole
	}
	for _, it := range pr.tr.Apply(e) {
		pr.draw(it)
	}
}

func (pr *printer) draw(it *transcript.Item) {
	switch it.Kind {
	case transcript.Message:
		pr.message(it)
		return
	case transcript.Reasoning:
		if pr.full && !pr.o.HideThought && strings.TrimSpace(it.Text) != "" {
			pr.colored(style.Dim, indent("(thinking) "+strings.TrimRight(it.Text, "\n")))
		}
		return
	case transcript.User, transcript.End:
		if !pr.all { // the user knows; the end has its own line
			return
		}
	case transcript.Retry:
		if it.Status != transcript.Open && !pr.full { // it was shown when it was announced
			return
		}
	}
	pr.flush()
	switch it.Kind {
	case transcript.User:
		pr.colored(style.Bold, "> "+strings.ReplaceAll(strings.TrimRight(it.Text, "\n"), "\n", "\n> "))
	case transcript.Call:
		pr.call(it)
	case transcript.Plan:
		pr.plan(it)
	case transcript.Background:
		pr.background(it)
	default:
		pr.colored(style.Yellow, "· "+it.Text)
	}
}

// message shows a message as it grows, or holds it back until it is known
// whether it is the answer.
func (pr *printer) message(it *transcript.Item) {
	if pr.live {
		text := it.Text
		if it.Status == transcript.Open {
			text = text[:safetext.Whole(text)]
		}
		pr.text(safetext.Strip(text[min(pr.shown[it.ID], len(text)):]))
		pr.shown[it.ID] = len(text)
		if it.Status != transcript.Open {
			pr.markPartial(it)
			pr.endOfLine()
		}
		return
	}
	if it.Status == transcript.Open && !pr.full {
		return
	}
	pr.flush()
	pr.pending = it
	if pr.all { // whether it is the answer makes no difference
		pr.flush()
	}
}

// flush prints the message that turned out not to be the answer.
func (pr *printer) flush() {
	if it := pr.pending; it != nil {
		pr.pending = nil
		pr.text(pr.render(it.Text))
		pr.markPartial(it)
		pr.endOfLine()
	}
}

// render makes a whole message what is printed of it.
func (pr *printer) render(text string) string {
	text = safetext.Strip(text)
	if pr.o.Markdown == nil {
		return text
	}
	return strings.Join(pr.o.Markdown(text, pr.o.width()), "\n")
}

func (pr *printer) markPartial(it *transcript.Item) {
	if it.Status == transcript.Interrupted {
		pr.text(pr.styled(style.Yellow, " […partial]"))
	}
}

func (pr *printer) call(it *transcript.Item) {
	if pr.calls.waits(it) {
		return
	}
	pr.drawCall(it)
	for next := pr.calls.next(); next != nil; next = pr.calls.next() {
		pr.drawCall(next)
	}
}

func (pr *printer) drawCall(it *transcript.Item) {
	if pr.over[it.ID] || it.Tool == "" && len(it.Command) == 0 && it.Approval == nil {
		return // declined and answered as well; or begun before we were there to see what it is
	}
	if _, begun := pr.shown[it.ID]; !begun {
		if len(it.Command)+len(it.Changes) == 0 && it.Status == transcript.Open && !pr.full {
			return // it becomes a command or a patch, or ends
		}
		pr.shown[it.ID] = 0
		pr.begin(it)
	} else if pr.calls.last != it.ID && (it.Status != transcript.Open || len(it.Output) > pr.shown[it.ID]) {
		pr.begin(it) // others were shown in between
	}
	pr.calls.show(it)
	pr.output(it)
	switch {
	case it.Status == transcript.Asking:
		pr.colored(style.Yellow, questions.Reason(wholeCall(it), it.Approval.Reason))
	case it.Status != transcript.Open:
		pr.callEnd(it)
	}
}

// begin shows what a call is about to do: all of it if it has to be judged.
func (pr *printer) begin(it *transcript.Item) {
	pr.calls.last = it.ID
	asking := it.Status == transcript.Asking
	if len(it.Changes) == 0 {
		text := callLine(it)
		if asking {
			text = questions.Whole(wholeCall(it))
		}
		pr.colored(style.Bold, "$ "+text)
		return
	}
	pr.colored(style.Bold, "$ apply_patch")
	for i, c := range it.Changes {
		if i == shownLines && !pr.full && !asking {
			pr.line("  … " + humanize.Count(len(it.Changes)-i, "more file"))
			break
		}
		pr.line("  " + safetext.ShowLine(c.Line(it.Cwd)))
	}
}

// callLine is a call that runs, cut if it is a whole program. Blank lines are counted here, too: what was approved
// elsewhere, or before, must not scroll away.
func callLine(it *transcript.Item) string {
	return cut(strings.Join(safetext.Fold(wholeCall(it), math.MaxInt32), "\n"))
}

func wholeCall(it *transcript.Item) string {
	if len(it.Changes) > 0 {
		return "apply_patch"
	}
	return cmp.Or(it.CommandLine(), transcript.RequestLine(it.Tool, it.Arguments), it.Tool+" "+it.Arguments)
}

// indent sets a text off from the left.
func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// lineLength is how much of a line is shown.
const lineLength = 1000

func cut(line string) string {
	if r := []rune(line); len(r) > lineLength {
		return string(r[:lineLength-1]) + "…"
	}
	return line
}

// printed shows a line of a command's output as it looked in the end: without its
// colours, and without what a progress bar has written over.
func (pr *printer) printed(line string) {
	line = strings.TrimRight(ansi.Strip(strings.ToValidUTF8(line, "\uFFFD")), "\r")
	pr.colored(style.Dim, "  "+cut(line[strings.LastIndexByte(line, '\r')+1:]))
}

// output shows the whole lines that have arrived since, up to a limit.
func (pr *printer) output(it *transcript.Item) {
	if len(it.Command) == 0 && !pr.full || len(it.Changes) > 0 && it.Status != transcript.Failed {
		return // the answer of a tool is for the model
	}
	rest := it.Output[min(pr.shown[it.ID], len(it.Output)):]
	for rest != "" && (pr.full || pr.lines[it.ID] < shownLines) {
		line, after, whole := strings.Cut(rest, "\n")
		if !whole && it.Status == transcript.Open && !pr.full {
			return
		}
		pr.printed(line)
		pr.lines[it.ID]++
		pr.shown[it.ID] += len(rest) - len(after)
		rest = after
	}
}

// ending says how a command or another call ended.
func ending(it *transcript.Item) string {
	switch it.Status {
	case transcript.Interrupted:
		return "interrupted"
	case transcript.Declined:
		return "declined"
	case transcript.Failed:
		return it.Failure()
	}
	return "ok"
}

func (pr *printer) callEnd(it *transcript.Item) {
	rest := it.Output[min(pr.shown[it.ID], len(it.Output)):]
	if len(it.Command) > 0 && rest != "" {
		lines := strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
		if n := len(lines) - tailLines; n > 0 {
			pr.colored(style.Dim, "  … "+humanize.Count(n, "more line"))
			lines = lines[n:]
		}
		for _, l := range lines {
			pr.printed(l)
		}
	}
	how := ending(it)
	switch {
	case it.Background != 0:
		how = fmt.Sprintf("continues in the background as %d", it.Background)
	case it.Status == transcript.Failed && len(it.Command) == 0 && !pr.full: // else it is printed above
		line, _, _ := strings.Cut(it.Output, "\n")
		how += ": " + line
	}
	pr.colored(style.Status(it.Status), fmt.Sprintf("  (%s, %s)", how, it.Elapsed(time.Time{})))
	pr.over[it.ID] = true
	delete(pr.shown, it.ID)
	delete(pr.lines, it.ID)
}

// background tells of the end of a background command.
func (pr *printer) background(it *transcript.Item) {
	if pr.full {
		pr.colored(style.Bold, fmt.Sprintf("· background command %d: %s", it.Background, callLine(it)))
		pr.output(it)
	}
	if it.Status != transcript.Open {
		pr.colored(style.Status(it.Status), fmt.Sprintf("· background command %d ended (%s)", it.Background, ending(it)))
	}
}

var boxes = map[string]string{"completed": "✓", "in_progress": "▸"}

func (pr *printer) plan(it *transcript.Item) {
	pr.over[strings.TrimPrefix(it.ID, "p")] = true // the plan is all there is to show of its call
	for _, s := range it.Plan {
		box := boxes[s.Status]
		if box == "" {
			box = "·"
		}
		pr.colored(style.Step(s.Status), "  "+box+" "+s.Step)
	}
}

// leftBehind tells of the background commands that end with us, and of those that do not.
func (pr *printer) leftBehind() {
	for _, b := range pr.tr.Running {
		if pr.o.Detach != nil { // another process has started it
			pr.colored(style.Yellow, fmt.Sprintf("· background command %d continues; to stop it: fermata kill %s %d", b.ID, pr.o.Conversation, b.ID))
			continue
		}
		pr.colored(style.Yellow, fmt.Sprintf("· background command %d is stopped with this run: %s", b.ID, cut(transcript.CommandLine(b.Command))))
	}
}

// used says what a turn took, and what that costs if the price is known.
func used(price func(p.Usage) (float64, bool), u p.Usage) string {
	text := fmt.Sprintf("· %d tokens in, %d out", u.Input, u.Output)
	if dollars, ok := lines.Cost(price, u); ok {
		text += fmt.Sprintf(", $%.4f", dollars)
	}
	return text
}

// endLine says how the turn ended, and how to resume if it did not complete.
func (pr *printer) endLine(end engine.TurnEnd) {
	pr.leftBehind()
	if end.Usage != (p.Usage{}) { // the service said it
		pr.line(used(pr.o.Cost, end.Usage))
	}
	if end.Unsaved {
		pr.line("fermata: the end of the turn could not be saved")
	}
	if end.End.Reason == p.Completed {
		return
	}
	pr.flush()
	for _, it := range pr.tr.Items {
		if it.Kind == transcript.End {
			pr.colored(style.End(end.End.Reason), "fermata: "+it.Text)
		}
	}
	if text := hint.Returned(pr.o.Conversation, pr.tr.Returned); text != "" {
		pr.line(text)
	}
	if !pr.o.Ephemeral {
		pr.line("to resume: " + pr.o.ResumeCommand())
	}
}

func (pr *printer) text(s string) {
	if s == "" {
		return
	}
	pr.clear()
	_, _ = io.WriteString(pr.w, s)
	pr.midLine = !strings.HasSuffix(s, "\n")
}

// Leave shows what was held back: it is not the answer.
func (pr *printer) Leave() {
	pr.flush()
	pr.leftBehind()
	pr.clear()
}

// clear takes the status line off the screen.
func (pr *printer) clear() {
	if pr.shows {
		pr.shows = false
		_, _ = io.WriteString(pr.w, clearLine)
	}
}

func (pr *printer) endOfLine() {
	if pr.midLine {
		pr.text("\n")
	}
}

func (pr *printer) line(s string) { pr.colored(style.Plain, s) }

func (pr *printer) colored(st style.Style, s string) {
	pr.endOfLine()
	pr.text(pr.styled(st, s) + "\n")
}

// styled is a text for the screen: what would move the cursor taken out, and
// in colour if that is wanted.
func (pr *printer) styled(st style.Style, s string) string {
	if !pr.o.Color {
		st = style.Plain
	}
	return st.Put(safetext.Strip(s))
}
