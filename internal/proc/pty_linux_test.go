package proc

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// startPty starts a script on a terminal.
func startPty(t *testing.T, script string) (*Command, *Capture) {
	t.Helper()
	out := new(Capture)
	c, err := newSpawner(t).Start(t.Context(), Spec{
		Argv: []string{"sh", "-c", script}, Pty: &Winsize{Rows: 24, Cols: 81},
	}, out.Write)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	return c, out
}

func TestPty(t *testing.T) {
	needs(t, "stty")
	c, out := startPty(t, `test -t 0 && test -t 1 && test -t 2 && echo all; tty >/dev/tty; stty size
		read line; echo "got $line"; stty size; echo err >&2; exit 3`)
	eventually(t, "the first size is told", func() bool { return strings.Contains(out.Text(), "24 81\r\n") })
	if err := c.Resize(Winsize{Rows: 50, Cols: 132}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	r := c.Wait()
	if r.ExitCode != 3 || r.Err != nil || r.Killed != 0 {
		t.Errorf("result %+v, want exit code 3", r)
	}
	text := out.Text()
	for _, want := range []string{"all\r\n", "/dev/pts/", "got hello\r\n", "50 132\r\nerr\r\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("output %q lacks %q", text, want)
		}
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after the end: error %v, want %v", err, os.ErrClosed)
	}
}

func TestPtyInterruptKey(t *testing.T) {
	c, out := startPty(t, "trap 'echo interrupted; exit 6' INT; echo up; while :; do sleep 0.01; done")
	eventually(t, "the command is up", func() bool { return strings.Contains(out.Text(), "up") })
	if _, err := c.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	if r := c.Wait(); r.ExitCode != 6 || !strings.Contains(out.Text(), "interrupted") {
		t.Errorf("result %+v, output %q, want exit code 6", r, out.Text())
	}
}

func TestPtyStop(t *testing.T) {
	c, out := startPty(t, "trap '' TERM HUP; echo up; cat")
	eventually(t, "the command is up", func() bool { return strings.Contains(out.Text(), "up") })
	c.Stop(errors.New("enough"))
	if r := c.Wait(); !r.Stopped || r.Err != nil || r.Killed == 0 {
		t.Errorf("result %+v, want stopped", r)
	}
}

func TestPtyCloseEndsRead(t *testing.T) {
	tty, err := openTerminal(Winsize{Rows: 1, Cols: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := tty.resize(Winsize{Rows: 2, Cols: 2}); err != nil { // must not make it blocking again
		t.Fatal(err)
	}
	reading, ended := make(chan struct{}), make(chan error)
	go func() {
		close(reading)
		_, err := tty.master.Read(make([]byte, 1))
		ended <- err
	}()
	<-reading
	_ = tty.master.Close() // the slave is open: nothing else ends the read
	defer tty.close()
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Errorf("read ended with %v, want %v", err, os.ErrClosed)
	}
}

func TestNoPty(t *testing.T) {
	c, err := newSpawner(t).Start(t.Context(), Spec{Argv: []string{"true"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("write to a command without terminal succeeded")
	}
	if err := c.Resize(Winsize{}); err == nil {
		t.Error("resize of a command without terminal succeeded")
	}
	c.Release()
	c.Wait()
}
