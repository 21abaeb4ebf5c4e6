package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/proc/socket"
)

// askMain sends its input and prints the answer.
func askMain() int {
	request, err := io.ReadAll(os.Stdin)
	if err == nil {
		var answer []byte
		if answer, err = socket.Ask(request); err == nil {
			_, err = os.Stdout.Write(answer)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// hostileMain uses the descriptor as nobody should.
func hostileMain() int {
	var fd int
	if _, err := fmt.Sscan(os.Getenv(socket.Variable), &fd); err != nil {
		return 2
	}
	var err error
	switch os.Args[1] {
	case "garbage":
		junk := bytes.Repeat([]byte("junk"), 1<<20)
		for err == nil {
			_, err = unix.Write(fd, junk) // until the reader has left
		}
		return 0
	case "pipe": // a reader of it would wait
		r, _, _ := os.Pipe()
		err = socket.Send(fd, []byte(" "), r)
	case "many":
		rights := unix.UnixRights(0, 1, 2, 0, 1, 2)
		err = unix.Sendmsg(fd, []byte(" "), rights, nil, 0)
	case "listener":
		s, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		_ = unix.Bind(s, &unix.SockaddrUnix{Name: os.Args[2]})
		_ = unix.Listen(s, 1)
		err = socket.Send(fd, []byte(" "), os.NewFile(uintptr(s), "listener"))
	case "silent": // connections that say nothing
		for range 3 * socket.MaxConns {
			_, theirs, pairErr := socket.Pair()
			if pairErr != nil {
				return 2
			}
			if err = socket.Send(fd, []byte(" "), theirs); err != nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// echo answers with the request and its length.
func echo(conn *os.File) {
	text, err := io.ReadAll(conn)
	if err == nil {
		fmt.Fprintf(conn, "%d %.20s", len(text), text)
	}
}

func helperEnv(part string) []string { return append(os.Environ(), helperVariable+"="+part) }

func TestAsk(t *testing.T) {
	for name, spec := range map[string]Spec{
		"plain":    {},
		"confined": {Confine: []byte(`{"Mark":true}`)},
		"own pids": {Confine: []byte(`{"Mark":true}`), PIDNamespace: true},
		"terminal": {Pty: &Winsize{Rows: 24, Cols: 80}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSpawner(t)
			spec.Argv = []string{"bash", "-c", `printf hello | "$0"; echo; head -c 3000000 /dev/zero | tr '\0' x | "$0"`, os.Args[0]}
			spec.Env, spec.Serve = helperEnv("ask"), echo
			r, out := runSpec(t, s, spec)
			got := strings.ReplaceAll(out.Text(), "\r", "")
			if want := "5 hello\n3000000 " + strings.Repeat("x", 20); r.ExitCode != 0 || r.Err != nil || got != want {
				t.Errorf("got %+v and %q, want %q", r, got, want)
			}
		})
	}
}

func TestAskIsNotServed(t *testing.T) {
	s := newSpawner(t)
	r, out := runSpec(t, s, Spec{Argv: []string{os.Args[0]}, Env: helperEnv("ask")})
	if r.ExitCode != 1 || !strings.Contains(out.Text(), socket.ErrNotServed.Error()) {
		t.Errorf("got %+v and %q", r, out.Text())
	}
}

// TestAskTogether has many processes of one command ask at once; each gets its own answer.
func TestAskTogether(t *testing.T) {
	s := newSpawner(t)
	r, out := runSpec(t, s, Spec{
		Argv: []string{"bash", "-c", `for i in 1 2 3 4 5 6 7 8; do (got=$(printf $i-$i | "$0"); [ "$got" = "3 $i-$i" ] && echo $i) & done; wait`, os.Args[0]},
		Env:  helperEnv("ask"), Serve: echo,
	})
	got := strings.Fields(out.Text())
	slices.Sort(got)
	if want := []string{"1", "2", "3", "4", "5", "6", "7", "8"}; r.Err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v and %q, want %q", r, got, want)
	}
}

// TestHostileUseOfTheSocket shows that the command ends as always, that nothing is left
// open, and that later commands are served.
func TestHostileUseOfTheSocket(t *testing.T) {
	for _, how := range []string{"garbage", "pipe", "many", "listener", "silent"} {
		t.Run(how, func(t *testing.T) {
			s := newSpawner(t)
			if r := s.Run(t.Context(), Spec{Argv: []string{"true"}, Serve: echo}, nil); r.Err != nil {
				t.Fatal(r.Err)
			}
			sparePID(t, s) // a spare shim comes and goes, and has descriptors
			before := openFiles(t)
			for i := range longtest.Default(8, 3) {
				r, out := runSpec(t, s, Spec{
					Argv: []string{os.Args[0], how, fmt.Sprint(t.TempDir(), "/socket", i)}, Env: helperEnv("hostile"), Serve: echo,
				})
				if r.ExitCode != 0 || r.Err != nil {
					t.Errorf("got %+v and %q", r, out.Text())
				}
			}
			sparePID(t, s)
			eventually(t, "no descriptor is left", func() bool { return openFiles(t) <= before })
			r, out := runSpec(t, s, Spec{Argv: []string{"bash", "-c", `printf hello | "$0"`, os.Args[0]}, Env: helperEnv("ask"), Serve: echo})
			if out.Text() != "5 hello" {
				t.Errorf("later: got %+v and %q", r, out.Text())
			}
		})
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestStopWhileServing stops a command that is being served: Wait returns after
// Serve has.
func TestStopWhileServing(t *testing.T) {
	s := newSpawner(t)
	asked, leave := make(chan struct{}), make(chan struct{})
	ended := false
	c, err := s.Start(t.Context(), Spec{
		Argv: []string{"bash", "-c", `printf x | "$0"`, os.Args[0]}, Env: helperEnv("ask"),
		Serve: func(conn *os.File) {
			close(asked)
			<-leave
			_, err := io.Copy(io.Discard, conn)
			ended = err == nil || errors.Is(err, os.ErrClosed)
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	<-asked
	c.Stop(errors.New("enough"))
	close(leave)
	if r := c.Wait(); !r.Stopped || !ended {
		t.Errorf("got %+v, serving has ended: %v", r, ended)
	}
}
