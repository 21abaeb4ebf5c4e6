// Package cli is what all commands share: the streams they read and write, exit codes and the errors that
// carry them, signals, the flags of everything that runs turns, and how a conversation is named on the command line.
package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/stdin"
	"github.com/fermata-agent/fermata/internal/safetext"
	"github.com/fermata-agent/fermata/internal/surface/exec"
)

// Streams are where a command reads and writes. Answers go to Out, everything
// else (progress, errors, hints) to Err.
//
// What a command prints was often written by others: a model, a command, a file. Whatever
// it is, it cannot control a terminal behind Out or Err; a pipe or a file gets every
// byte. RawOut and RawErr are below them, for what draws on the terminal and sanitizes
// by itself.
type Streams struct {
	In             io.Reader
	Out, Err       io.Writer
	RawOut, RawErr io.Writer
}

// NewStreams returns streams that sanitize what is printed on a terminal.
func NewStreams(in io.Reader, out, err io.Writer) Streams {
	return Streams{In: in, Out: sanitize(out), Err: sanitize(err), RawOut: out, RawErr: err}
}

// Stdio returns those of this process.
func Stdio() Streams { return NewStreams(os.Stdin, os.Stdout, os.Stderr) }

// sanitize returns w, or a writer that makes text safe for it if it is a terminal.
func sanitize(w io.Writer) io.Writer {
	if Terminal(w) {
		return safetext.NewWriter(w)
	}
	return w
}

// ReportWaiting says that stdin is being read.
func (s Streams) ReportWaiting() {
	fmt.Fprintln(s.Err, "fermata: reading from stdin until it is closed; use </dev/null if there is no input")
}

// Piped reports whether stdin was given to be read, as opposed to a
// terminal, or a device such as /dev/null that is there only because something must be.
func (s Streams) Piped() bool {
	f, ok := s.In.(*os.File)
	if !ok {
		return s.In != nil
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// ReadText reads all of stdin, without white space around it.
func (s Streams) ReadText() (string, error) { return stdin.Read(s.In, s.ReportWaiting) }

// Terminal reports whether a stream is a terminal.
func Terminal(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr })
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), GetTermios)
	return err == nil
}

// Columns is how wide a terminal is, 0 if that is not known.
func Columns(stream any) int {
	f, ok := stream.(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// DarkTerminal reports whether the terminal has a dark background, as far as its environment says.
func DarkTerminal() bool { return !lightByEnv(os.Getenv("COLORFGBG")) }

// lightByEnv reports whether a terminal that sets COLORFGBG has a light background.
func lightByEnv(v string) bool {
	i := strings.LastIndexByte(v, ';')
	return i >= 0 && (v[i+1:] == "7" || v[i+1:] == "15")
}

// Confirm asks a question that is answered by y or n.
func Confirm(s Streams, question string) bool {
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(s.In).ReadString('\n')
	a := strings.ToLower(strings.TrimSpace(answer))
	return a == "y" || a == "yes"
}

// The values of --color.
const (
	ColorAlways = "always"
	ColorNever  = "never"
	ColorAuto   = "auto"
)

// Printing says where a turn is printed, and how. Colour is for progress only.
func Printing(s Streams, color string) exec.Output {
	o := exec.Output{Out: s.RawOut, Err: s.RawErr, OutTerminal: Terminal(s.RawOut), ErrTerminal: Terminal(s.RawErr)}
	o.Width = func() int { return Columns(s.RawErr) }
	term := os.Getenv("TERM")
	o.Plain = term == "" || term == "dumb"
	o.Color = color == ColorAlways || color == ColorAuto && o.ErrTerminal && !o.Plain && os.Getenv("NO_COLOR") == ""
	return o
}

// ReportRepairs says what was repaired when a conversation was opened.
func ReportRepairs(s Streams, snap engine.Snapshot) {
	for _, word := range snap.Recovered {
		fmt.Fprintf(s.Err, "fermata: %s\n", word)
	}
}
