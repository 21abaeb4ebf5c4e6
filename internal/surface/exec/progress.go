package exec

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/exec/style"
	"github.com/fermata-agent/fermata/internal/transcript"
	p "github.com/fermata-agent/fermata/protocol"
)

// A watched drawing is one on a terminal: below what was printed, a line shows
// that something goes on. Its goroutine is the only one that draws.
type watched struct {
	pr     *printer
	events chan p.Event
	end    chan engine.TurnEnd
	left   chan struct{} // the turn is left as it is
	asks   chan question // what a person is asked; a zero one was answered
	result chan error    // has room for one
	quit   <-chan struct{}
}

const frameTime = 120 * time.Millisecond

// watch draws until finish, or until quit is closed.
func watch(pr *printer, quit <-chan struct{}) *watched {
	w := &watched{pr, make(chan p.Event), make(chan engine.TurnEnd), make(chan struct{}), make(chan question), make(chan error, 1), quit}
	go w.run()
	return w
}

func (w *watched) run() {
	tick := time.NewTicker(frameTime)
	defer tick.Stop()
	for frame := 0; ; {
		select {
		case e := <-w.events:
			w.pr.Event(e)
		case q := <-w.asks:
			w.pr.ask(q)
		case now := <-tick.C:
			frame++
			w.pr.status(frame, now)
		case end := <-w.end:
			w.result <- w.pr.Finish(end)
			return
		case <-w.left:
			w.pr.Leave()
			w.result <- nil
			return
		case <-w.quit:
			return
		}
	}
}

func (w *watched) Event(e p.Event) {
	select {
	case w.events <- e:
	case <-w.quit:
	}
}

func (w *watched) Finish(end engine.TurnEnd) error {
	select {
	case w.end <- end:
		return <-w.result
	case <-w.quit:
		return nil
	}
}

// A question is what a person is asked: some lines, and what stands before the answer.
type question struct{ lines, prompt string }

// ask shows a question; the cursor stays behind it.
func (w *watched) ask(lines, prompt string) { w.send(question{lines, prompt}) }

// clearQuestion says that the person has typed an answer, and Enter.
func (w *watched) clearQuestion() { w.send(question{}) }

func (w *watched) send(q question) {
	select {
	case w.asks <- q:
	case <-w.quit:
	}
}

func (pr *printer) ask(q question) {
	pr.midLine = pr.midLine && q.prompt != "" // the terminal has shown Enter
	if q.lines != "" {
		pr.line(q.lines)
	}
	if q.prompt != "" {
		pr.endOfLine()
		pr.text(pr.styled(style.Bold, q.prompt))
	}
}

func (w *watched) Leave() {
	w.left <- struct{}{}
	<-w.result
}

var frames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// clearLine goes back to the start of the line and empties it.
const clearLine = "\r\x1b[K"

// status draws the line that shows what goes on, unless a message is being
// written where it would stand.
func (pr *printer) status(frame int, now time.Time) {
	if !pr.tr.Active || pr.midLine || pr.o.Plain {
		return
	}
	parts := []string{fmt.Sprintf("%.0f s", now.Sub(pr.tr.Started).Seconds())}
	if it := pr.current(); it != nil {
		parts = append(parts, callLine(it))
	}
	if n := pr.tr.Usage.Total; n > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", n))
	}
	if pr.tr.Stopping {
		parts = append(parts, "stopping…")
	}
	line := string(frames[frame%len(frames)]) + " " + strings.Join(parts, " · ")
	_, _ = fmt.Fprint(pr.w, clearLine+pr.styled(style.Dim, oneLine(line, pr.o.width())))
	pr.shows = true
}

// oneLine makes a text fit into a line of a terminal: a line that is broken
// cannot be drawn over.
func oneLine(s string, width int) string {
	s = strings.Join(strings.Fields(safetext.Strip(s)), " ")
	return ansi.Truncate(s, max(width-3, 0), "…") // room for ^C, and none in the last column, where some terminals go on to the next line
}

// narrow is how wide a terminal is of which nothing is known.
const narrow = 80

// width is how wide the terminal is now.
func (o Output) width() int {
	if o.Width != nil {
		if n := o.Width(); n > 0 {
			return n
		}
	}
	return narrow
}

// current is the command that runs.
func (pr *printer) current() *transcript.Item {
	for i := len(pr.tr.Items) - 1; i >= 0; i-- {
		if it := pr.tr.Items[i]; it.Kind == transcript.Call && it.Status == transcript.Open {
			return it
		}
	}
	return nil
}
