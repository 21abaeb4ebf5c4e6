package proc

import (
	"io"
	"strings"
	"testing"
)

func TestInputReachesCommandAndEnds(t *testing.T) {
	s := newSpawner(t)
	var out Capture
	out.Head = 1 << 20
	c, err := s.Start(t.Context(), Spec{Argv: []string{"sh", "-c", "read line; echo got $line; cat; echo end"}, Input: true}, out.Write)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	in := c.Input()
	if _, err := io.WriteString(in, "one\n"+strings.Repeat("x", 200_000)+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if r := c.Wait(); r.ExitCode != 0 || r.Err != nil {
		t.Errorf("result %+v", r)
	}
	if want := "got one\n" + strings.Repeat("x", 200_000) + "\nend\n"; out.Text() != want {
		t.Errorf("output of %d bytes, want %d", len(out.Text()), len(want))
	}
}

// A command that does not read must not hold whoever writes to it.
func TestEndOfCommandEndsAWriteThatBlocks(t *testing.T) {
	s := newSpawner(t)
	c, err := s.Start(t.Context(), Spec{Argv: []string{"sleep", "600"}, Input: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	wrote := make(chan error, 1)
	go func() {
		_, err := c.Input().Write(make([]byte, 1<<20)) // more than a pipe holds
		wrote <- err
	}()
	c.Stop(nil)
	if r := c.Wait(); !r.Stopped {
		t.Errorf("result %+v", r)
	}
	if err := <-wrote; err == nil {
		t.Error("the write succeeded")
	}
}

func TestInputAndTerminalExclude(t *testing.T) {
	_, err := newSpawner(t).Start(t.Context(), Spec{Argv: []string{"true"}, Input: true, Pty: &Winsize{24, 80}}, nil)
	if err == nil {
		t.Error("it was started")
	}
}
