package terminal

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/creack/pty"
)

// A board shows a text that keys are added to.
type board struct {
	text  string
	above bool     // on the normal screen
	lines []string // for the scrollback
	views atomic.Int64
	do    map[string]tea.Cmd
}

func (b *board) Init() tea.Cmd { return nil }

func (b *board) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	key, ok := msg.(tea.KeyPressMsg)
	switch {
	case !ok:
		return b, nil
	case key.String() == "q":
		return b, tea.Quit
	case key.String() == "p" && b.above:
		b.lines = []string{"one", "two"}
		return b, nil
	case b.do[key.String()] != nil:
		return b, b.do[key.String()]
	}
	b.text += key.Text
	return b, nil
}

func (b *board) TakeAbove() []string {
	lines := b.lines
	b.lines = nil
	return lines
}

func (b *board) View() tea.View {
	b.views.Add(1)
	v := tea.NewView("<" + b.text + ">")
	v.AltScreen = !b.above
	v.Cursor = tea.NewCursor(len(b.text)+1, 0)
	return v
}

// A glass is a terminal with what was written to it.
type glass struct {
	t           *testing.T
	master, tty *os.File
	mu          sync.Mutex
	text        strings.Builder // guarded by mu
	more        chan struct{}
}

func newGlass(t *testing.T) *glass {
	master, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal can be had here: %v", err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 5, Cols: 20}); err != nil {
		t.Fatal(err)
	}
	g := &glass{t: t, master: master, tty: tty, more: make(chan struct{}, 1)}
	read := make(chan struct{})
	go func() { // ends with the terminal
		defer close(read)
		_, _ = io.Copy(g, master)
	}()
	t.Cleanup(func() {
		tty.Close()
		master.Close()
		<-read
	})
	return g
}

func (g *glass) Write(data []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case g.more <- struct{}{}:
	default:
	}
	return g.text.Write(data)
}

// sees waits until something was written.
func (g *glass) sees(part string) {
	g.t.Helper()
	over := time.After(10 * time.Minute) // the machine may be busy
	for {
		g.mu.Lock()
		text := g.text.String()
		g.mu.Unlock()
		if strings.Contains(text, part) {
			return
		}
		select {
		case <-g.more:
		case <-over:
			g.t.Fatalf("the terminal never got %q: %q", part, text)
		}
	}
}

func (g *glass) press(keys string) {
	g.t.Helper()
	if _, err := g.master.WriteString(keys); err != nil {
		g.t.Fatal(err)
	}
}

func (g *glass) options() Options {
	return Options{In: g.tty, Out: g.tty, Env: []string{"TERM=xterm-256color"}}
}

// start runs a program; its end is what the channel gives.
func (g *glass) start(b *board) (*Program, <-chan error) {
	p := New(g.t.Context(), b, g.options())
	ended := make(chan error, 1)
	go func() { ended <- p.Run() }()
	return p, ended
}

func TestDrawsOnDemand(t *testing.T) {
	g, b := newGlass(t), &board{}
	p, ended := g.start(b)
	g.sees("<>")
	g.press("a")
	g.sees("a>")
	p.Send(nil)
	before := b.views.Load()
	time.AfterFunc(20*frameTime, func() { p.Send(tea.QuitMsg{}) }) // meanwhile nothing happens
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := b.views.Load() - before; n > 2 { // one that may have been due, and the last
		t.Errorf("drawn %d times while nothing happened", n)
	}
}

// While something else has the terminal nothing is read or drawn; afterwards all of it is.
func TestExec(t *testing.T) {
	g := newGlass(t)
	var heard string
	b := &board{text: "kept", do: map[string]tea.Cmd{"e": Exec(func(in io.Reader, out io.Writer) error {
		if _, err := io.WriteString(out, "ready?"); err != nil {
			return err
		}
		line := make([]byte, 8)
		n, err := in.Read(line)
		heard = string(line[:n])
		return errors.Join(err, errors.New("as usual"))
	}, func(err error) tea.Msg { return tea.KeyPressMsg{Text: err.Error()} })}}
	_, ended := g.start(b)
	g.sees("<kept>")
	g.press("e")
	g.sees("ready?")
	g.press("to it\n")
	g.sees("as usual>") // in one frame with what was there, or after it
	g.press("q")
	if err := <-ended; err != nil || heard != "to it\n" {
		t.Errorf("error %v; it heard %q", err, heard)
	}
}

// A terminal that takes nothing does not keep the program from ending.
func TestStuckTerminal(t *testing.T) {
	in, w := io.Pipe()
	defer w.Close()
	stuck := make(chan struct{})
	defer close(stuck)
	p := New(t.Context(), &board{}, Options{In: in, Out: stuckWriter(stuck)})
	ended := make(chan error, 1)
	go func() { ended <- p.Run() }()
	p.Send(nil) // it runs
	p.Kill()
	if err := <-ended; !errors.Is(err, ErrKilled) {
		t.Errorf("got %v", err)
	}
}

type stuckWriter chan struct{}

func (s stuckWriter) Write(data []byte) (int, error) {
	<-s
	return len(data), nil
}

func TestPanicOfACommand(t *testing.T) {
	g, b := newGlass(t), &board{do: map[string]tea.Cmd{"p": func() tea.Msg { panic("a bug") }}}
	_, ended := g.start(b)
	g.sees("<>")
	g.press("p")
	if err := <-ended; !errors.Is(err, ErrPanic) {
		t.Errorf("got %v", err)
	}
	g.sees("\x1b[?1049l")
}

// On the normal screen lines are printed above what is drawn, which is drawn again.
func TestPrintAbove(t *testing.T) {
	g, b := newGlass(t), &board{above: true}
	_, ended := g.start(b)
	g.sees("<>")
	g.press("p")
	g.sees("\x1b[2Kone\x1b[m\r\ntwo\x1b[m\r\n")
	g.press("x")
	g.sees("x>")
	g.press("q")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
