// Package terminal runs a Bubble Tea model in a terminal, and draws on demand: a
// change is on the screen as soon as the terminal takes it, at most once a frame,
// and while nothing changes nothing runs. (Bubble Tea's own program looks for
// changes sixty times a second, and shows them that much later.)
//
// One goroutine, the caller's of [Program.Run], has the model and decides what is
// written; another one writes, so that a terminal that takes nothing cannot keep the
// program from ending. Start reading at Program.loop.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// frameTime is the least time between two drawings.
const frameTime = 8 * time.Millisecond

// writeTime is how long a terminal that takes nothing is waited for at the end.
const writeTime = 500 * time.Millisecond

// Options are the terminal of a program.
type Options struct {
	In  io.Reader // a terminal, or what stands for one in tests
	Out io.Writer // the same terminal
	Env []string  // says what the terminal can do
}

// ErrPanic says that a bug ended the program; what it was has been printed.
var ErrPanic = errors.New("fermata crashed because of a bug; details are above")

// ErrKilled says that Kill ended the program.
var ErrKilled = errors.New("the screen was closed")

// A Program shows a model. Send and Kill may be called from any goroutine.
type Program struct {
	model tea.Model
	o     Options
	msgs  chan tea.Msg // many senders; received only by loop
	life  context.Context
	kill  context.CancelFunc // ends life

	term   *terminal
	screen *screen
	out    *writer
	drawn  time.Time
	dirty  bool
	frame  *time.Timer // fires when a change may be drawn
}

// New returns a program that is not running. It is killed when ctx ends.
func New(ctx context.Context, m tea.Model, o Options) *Program {
	p := &Program{model: m, o: o, msgs: make(chan tea.Msg)}
	p.life, p.kill = context.WithCancel(ctx)
	return p
}

// Send gives the model a message. It waits until the message is taken, or the program
// has ended.
func (p *Program) Send(msg tea.Msg) {
	select {
	case p.msgs <- msg:
	case <-p.life.Done():
	}
}

// Kill ends the program without asking the model.
func (p *Program) Kill() { p.kill() }

// Run shows the model until it quits. The terminal is what it was when Run returns,
// also after a panic.
func (p *Program) Run() (err error) {
	defer p.kill() // ends all commands that wait
	if p.term, err = open(p.o); err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	profile := colorprofile.Detect(p.o.Out, p.o.Env)
	p.screen = newScreen(p.o.Env, profile)
	p.out = newWriter(p.o.Out)
	p.frame = time.NewTimer(time.Hour)
	defer p.frame.Stop()
	defer func() {
		broken := recover()
		p.end()
		if broken != nil {
			report(broken, debug.Stack())
			err = ErrPanic
		}
	}()
	p.term.listen(p.life, p.Send)
	w, h := p.term.size()
	p.screen.resize(w, h)
	p.screen.begin(p.o.Env)
	for _, msg := range []tea.Msg{tea.ColorProfileMsg{Profile: profile}, tea.WindowSizeMsg{Width: w, Height: h}} {
		p.update(msg)
	}
	p.start(p.model.Init())
	return p.loop()
}

func (p *Program) loop() error {
	for {
		p.draw()
		select {
		case <-p.life.Done():
			return ErrKilled
		case <-p.out.done:
			p.out.busy = false
		case <-p.frame.C:
		case msg := <-p.msgs:
			if gone, err := p.take(msg); gone {
				return err
			}
		}
	}
}

// take deals with one message. It reports whether it was the last.
func (p *Program) take(msg tea.Msg) (bool, error) {
	switch msg := msg.(type) {
	case nil:
		return false, nil
	case tea.QuitMsg:
		p.dirty, p.drawn = true, time.Time{}
		p.draw() // what is seen last is how it ended
		return true, nil
	case tea.BatchMsg:
		for _, cmd := range msg {
			p.start(cmd)
		}
		return false, nil
	case inputEnded:
		return true, msg.err
	case panicked:
		report(msg.value, msg.stack)
		return true, ErrPanic
	case tea.RawMsg:
		p.screen.write(fmt.Sprint(msg.Msg))
	case clearScreen:
		p.screen.clear()
	case away:
		p.leave(msg)
		return false, nil
	case tea.WindowSizeMsg:
		p.screen.resize(msg.Width, msg.Height)
	case tea.ModeReportMsg:
		p.screen.onMode(msg)
	}
	p.update(msg)
	return false, nil
}

func (p *Program) update(msg tea.Msg) {
	var cmd tea.Cmd
	p.model, cmd = p.model.Update(msg)
	p.dirty = true
	p.start(cmd)
}

// draw shows the model as it is now, unless it was drawn a moment ago or the terminal
// has not taken the last drawing: then it is drawn later.
func (p *Program) draw() {
	if p.out.busy {
		return // which ends with p.out.done
	}
	if p.dirty {
		if wait := frameTime - time.Since(p.drawn); wait > 0 {
			p.frame.Reset(wait)
		} else {
			p.dirty, p.drawn = false, time.Now()
			if above, ok := p.model.(Above); ok {
				p.screen.print(above.TakeAbove())
			}
			p.screen.draw(p.model.View())
		}
	}
	if data := p.screen.take(); len(data) > 0 {
		p.out.write(data)
	}
}

// start runs a command beside the loop. What it returns is a message.
func (p *Program) start(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() { // ends when the command does; its message goes nowhere after the program
		defer func() {
			if r := recover(); r != nil {
				p.Send(panicked{r, debug.Stack()})
			}
		}()
		if msg := cmd(); msg != nil {
			p.Send(msg)
		}
	}()
}

// panicked carries a panic of a command to where the terminal can be restored.
type panicked struct {
	value any
	stack []byte
}

func report(value any, stack []byte) {
	fmt.Fprintf(os.Stderr, "\r\nfermata: a bug: %v\r\n\n%s\n", value, stack)
}

// end restores the terminal.
func (p *Program) end() {
	p.term.pause()
	p.screen.end()
	p.out.last(p.screen.take())
	p.term.restore()
}

// clearScreen asks to draw everything again.
type clearScreen struct{}

// ClearScreen is a command: everything is drawn again.
func ClearScreen() tea.Msg { return clearScreen{} }

// Above is a model that has lines for the terminal's own scrollback. TakeAbove is called before
// View; what it returns is printed above what is drawn, for good. While the alternate
// screen is shown it must return none.
type Above interface{ TakeAbove() []string }

// away is something that has the terminal for itself.
type away struct {
	do   func(io.Reader, io.Writer) error
	then func(error) tea.Msg
}

// Exec is the command that gives the terminal away while something is done, such as an
// editor. Messages wait until it is over.
func Exec(do func(in io.Reader, out io.Writer) error, then func(error) tea.Msg) tea.Cmd {
	return func() tea.Msg { return away{do, then} }
}

func (p *Program) leave(a away) {
	p.term.pause()
	p.screen.end()
	p.out.last(p.screen.take())
	p.term.restore()
	err := a.do(p.o.In, p.o.Out)
	if rawErr := p.term.raw(); err == nil && rawErr != nil {
		err = rawErr
	}
	p.term.listen(p.life, p.Send)
	w, h := p.term.size()
	p.screen.resize(w, h)
	p.screen.again()
	p.update(tea.WindowSizeMsg{Width: w, Height: h}) // it may have changed meanwhile
	p.start(func() tea.Msg { return a.then(err) })
}
