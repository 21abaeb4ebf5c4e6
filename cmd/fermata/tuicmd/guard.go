package tuicmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	p "github.com/fermata-agent/fermata/protocol"
)

// A guard is a small process that restores the terminal if we can not: after
// kill -9, and after a panic in a goroutine that is not the screen's. It listens at a
// pipe that ends with us.
type guard struct {
	pipe *os.File // nil if there is no guard
	cmd  *exec.Cmd
}

// The messages to the guard, one line each. Any other line is the text of a crash.
const (
	guardBye   = "fermata: bye"
	guardShows = "fermata: shows "
)

// startGuard starts a guard for the terminal as it is now. Without one there is
// nothing to be done about such ends, and nothing else is worse.
func startGuard(s cli.Streams) *guard {
	none := &guard{}
	in, ok := s.In.(*os.File)
	if !ok {
		return none
	}
	state, err := unix.IoctlGetTermios(int(in.Fd()), cli.GetTermios)
	if err != nil {
		return none
	}
	text, err := json.Marshal(state)
	if err != nil {
		return none
	}
	self, err := os.Executable()
	if err != nil {
		return none
	}
	r, w, err := os.Pipe()
	if err != nil {
		return none
	}
	defer r.Close()
	cmd := exec.Command(self, guardCommandName, string(text))
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = in, s.RawOut, s.RawErr, []*os.File{r}
	if cmd.Start() != nil || debug.SetCrashOutput(w, debug.CrashOptions{}) != nil {
		w.Close() // which ends a guard that was started, at most with a terminal restored too often
		return none
	}
	return &guard{w, cmd}
}

// shows tells which conversation is on the screen.
func (g *guard) shows(id p.ConversationID) {
	if g.pipe != nil {
		fmt.Fprintln(g.pipe, guardShows+string(id))
	}
}

// dismiss ends the guard: the terminal is restored.
func (g *guard) dismiss() {
	if g.pipe == nil {
		return
	}
	fmt.Fprintln(g.pipe, guardBye)
	_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
	g.pipe.Close()
	gone := make(chan struct{})
	go func() { // bounded below
		_ = g.cmd.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(time.Second):
		_ = g.cmd.Process.Kill()
	}
	g.pipe = nil
}

const guardCommandName = "restore-terminal"

// guardCommand is what the guard runs.
func guardCommand(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use: guardCommandName, Hidden: true, Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			// Those that a terminal sends are not meant for us; the last two would
			// stop us when the shell has the terminal again.
			signal.Ignore(unix.SIGINT, unix.SIGQUIT, unix.SIGHUP, unix.SIGTERM, unix.SIGTTOU, unix.SIGTTIN)
			return watchOver(cmd.Context(), s, os.NewFile(3, "pipe"), a[0])
		},
	}
}

// watchOver waits for the end of the program whose terminal it is.
func watchOver(_ context.Context, s cli.Streams, pipe io.Reader, state string) error {
	if pipe == nil {
		return cli.Usagef("%s is started by fermata itself", guardCommandName)
	}
	text, _ := io.ReadAll(io.LimitReader(pipe, 1<<20)) // an end is an end
	id, crash, bye := lastWords(text)
	if bye {
		return nil
	}
	var was unix.Termios
	if err := json.Unmarshal([]byte(state), &was); err != nil {
		return cli.Usagef("%s: %w", guardCommandName, err)
	}
	_, _ = io.WriteString(s.RawOut, leaveScreen)
	if in, ok := s.In.(*os.File); ok {
		_ = unix.IoctlSetTermios(int(in.Fd()), setTermios, &was)
	}
	if crash != "" {
		fmt.Fprintf(s.Err, "\n%s", crash)
	}
	fmt.Fprintln(s.Err, "\nfermata was killed; the conversation is saved")
	if id != "" {
		fmt.Fprintln(s.Err, "to resume: fermata resume "+id)
	}
	return nil
}

// lastWords takes what came through the pipe apart.
func lastWords(text []byte) (id, crash string, bye bool) {
	var rest bytes.Buffer
	for line := range bytes.Lines(text) {
		word := strings.TrimSuffix(string(line), "\n")
		switch shown, ok := strings.CutPrefix(word, guardShows); {
		case ok:
			id = shown
		case word == guardBye:
			return id, "", true
		default:
			rest.Write(line)
		}
	}
	return id, rest.String(), false
}
