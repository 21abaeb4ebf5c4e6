package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/proc/tree"
)

// TestOrderOfStreams writes to both pipes without a pause: what was ready first
// is delivered first.
func TestOrderOfStreams(t *testing.T) {
	s := newSpawner(t)
	for range 8 {
		for script, want := range map[string]string{
			"echo out; echo err >&2": "out\nerr\n",
			"echo err >&2; echo out": "err\nout\n",
		} {
			if _, out := runScript(t, s, script); out.Text() != want {
				t.Fatalf("output of %q is %q, want %q", script, out.Text(), want)
			}
		}
	}
}

// TestInterleavedOutput has the command wait for each delivery before it writes
// again, so the order is known for certain.
func TestInterleavedOutput(t *testing.T) {
	dir := t.TempDir()
	script := `i=0; while test $i -lt 6; do
		if test $((i % 2)) = 0; then echo $i; else echo $i >&2; fi
		while ! test -e "$1/$i"; do sleep 0.01; done
		i=$((i + 1)); done`
	var got []string
	r := newSpawner(t).Run(t.Context(), Spec{Argv: []string{"sh", "-c", script, "sh", dir}}, func(st Stream, b []byte) {
		text := strings.TrimSpace(string(b))
		got = append(got, st.String()+" "+text)
		if err := os.WriteFile(filepath.Join(dir, text), nil, 0o600); err != nil {
			t.Error(err)
		}
	})
	want := []string{"stdout 0", "stderr 1", "stdout 2", "stderr 3", "stdout 4", "stderr 5"}
	if d := cmp.Diff(want, got); d != "" || r.Err != nil {
		t.Errorf("result %+v, deliveries (-want +got):\n%s", r, d)
	}
}

func TestMuchOutputIsWhole(t *testing.T) {
	const lines = 60_000
	out := Capture{Head: 8 << 20}
	r := newSpawner(t).Run(t.Context(), Spec{
		Argv: []string{"sh", "-c", fmt.Sprintf("seq 1 %d; seq 1 %d >&2", lines, lines)},
	}, out.Write)
	var want strings.Builder
	for i := range lines {
		fmt.Fprintln(&want, i+1)
	}
	if r.Err != nil || out.Stdout() != want.String() || out.Stderr() != want.String() {
		t.Errorf("result %+v; %d and %d bytes arrived, want %d each", r, len(out.Stdout()), len(out.Stderr()), want.Len())
	}
}

// TestPipeHeldBySurvivor has a process that is not of the tree hold the pipes:
// this one.
func TestPipeHeldBySurvivor(t *testing.T) {
	for _, pty := range []*Winsize{nil, {Rows: 10, Cols: 20}} {
		t.Run(fmt.Sprintf("pty %v", pty != nil), func(t *testing.T) {
			s := newSpawner(t)
			var out Capture
			file := filepath.Join(t.TempDir(), "go")
			c, err := s.Start(t.Context(), Spec{
				Argv: []string{"sh", "-c", `echo up; while ! test -e "$1"; do sleep 0.01; done; echo down`, "sh", file}, Pty: pty,
			}, out.Write)
			if err != nil {
				t.Fatal(err)
			}
			c.Release()
			eventually(t, "the command is up", func() bool { return out.Total() > 0 })
			for _, fd := range []string{"1", "2"} {
				f, err := os.OpenFile("/proc/"+itoa(tree.CommandPID(c.Identity()))+"/fd/"+fd, os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
			}
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			r := c.Wait() // hangs if it waits for the end of file
			text := strings.ReplaceAll(out.Text(), "\r", "")
			if r.Err != nil || r.ExitCode != 0 || text != "up\ndown\n" {
				t.Errorf("result %+v, output %q", r, text)
			}
		})
	}
}

// TestSlowSinkLosesNothing has a sink that is still busy with the first words when
// the time to wait for the last ones is over.
func TestSlowSinkLosesNothing(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() // until then it holds the pipe open
	busy, goOn := make(chan struct{}), make(chan struct{})
	var got strings.Builder
	p, err := startPump([]source{{Stdout, r}}, func(_ Stream, b []byte) {
		if got.Len() == 0 {
			close(busy)
			<-goOn
		}
		got.Write(b)
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, "first ")
	<-busy
	fmt.Fprint(w, strings.Repeat("x", 40<<10), " last")
	_ = p.set.SetReadDeadline(time.Now()) // as finish does
	close(goOn)
	p.finish(0)
	if want := "first " + strings.Repeat("x", 40<<10) + " last"; got.String() != want {
		t.Errorf("%d bytes arrived, want %d", got.Len(), len(want))
	}
}

func TestNoSink(t *testing.T) {
	r := newSpawner(t).Run(t.Context(), Spec{Argv: []string{"sh", "-c", "seq 1 100000"}}, nil)
	if r.Err != nil || r.ExitCode != 0 {
		t.Errorf("result %+v, want success", r)
	}
}
