package jointest

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/longtest"
	p "github.com/fermata-agent/fermata/protocol"
)

var (
	length = flag.Duration("join-time", time.Duration(longtest.Default(5, 1))*time.Second, "how long processes share conversations")
	seed   = flag.Uint64("join-seed", 0, "of what is done to the processes; 0 is another one each time")
)

const processes = 6

// A town is a home, and the processes that share its conversations.
type town struct {
	t    *testing.T
	home string
	logs string
	ids  []string
	rng  *rand.Rand
	next uint64 // the seed of the next process
	runs [processes]*resident
}

// A resident is one of the processes.
type resident struct {
	cmd     *exec.Cmd
	errs    bytes.Buffer
	ended   chan struct{} // closed when it has
	stopped time.Time     // until when it is; zero if it is not
	killed  bool
}

func (w *town) command(role string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	w.next++
	cmd.Env = append(os.Environ(), "FERMATA_HOME="+w.home, "HOME="+w.home, "CODEX_HOME=", roleVar+"="+role, logsVar+"="+w.logs,
		talksVar+"="+strings.Join(w.ids, " "), seedVar+"="+strconv.FormatUint(w.next, 10))
	cmd.Dir = w.home
	return cmd
}

// once runs a process to its end.
func (w *town) once(role string) string {
	w.t.Helper()
	cmd := w.command(role)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", role, err, errs.String())
	}
	return string(out)
}

func (w *town) start() *resident {
	w.t.Helper()
	r := &resident{cmd: w.command("work"), ended: make(chan struct{})}
	r.cmd.Stderr = &r.errs
	if err := r.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = r.cmd.Wait() // how it ended is in its state
		close(r.ended)
	}()
	return r
}

// TestProcessesShareConversations starts, stops, continues, ends and kills processes at random. All the time
// each of them follows all conversations, and has turns run and interrupted. In the end nothing that anybody
// saw or was promised is missing, nothing is there twice, and nothing is left running.
func TestProcessesShareConversations(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano() % 1e9)
	}
	t.Logf("-join-seed %d", *seed)
	dir := t.TempDir()
	w := &town{t: t, home: filepath.Join(dir, "home"), logs: filepath.Join(dir, "logs"), rng: rand.New(rand.NewPCG(*seed, 0))}
	for _, d := range []string{w.home, w.logs} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.ids = strings.Fields(w.once("create"))
	w.next = *seed
	over := time.After(*length)
	for done := false; !done; {
		select {
		case <-over:
			done = true
		case <-time.After(time.Duration(50+w.rng.IntN(200)) * time.Millisecond):
			w.disturb()
		}
	}
	w.end()
	w.once("settle")
	w.check()
}

// disturb does something to one of the processes.
func (w *town) disturb() {
	w.t.Helper()
	for _, r := range w.runs {
		if r != nil && !r.stopped.IsZero() && time.Now().After(r.stopped) {
			r.signal(syscall.SIGCONT)
			r.stopped = time.Time{}
		}
	}
	at := w.rng.IntN(processes)
	what, long := w.rng.IntN(10), time.Duration(w.rng.IntN(4000))*time.Millisecond
	r := w.runs[at]
	if r == nil {
		w.runs[at] = w.start()
		return
	}
	select {
	case <-r.ended:
		w.ended(r)
		w.runs[at] = nil
		return
	default:
	}
	switch {
	case what < 2:
		r.killed = true
		r.signal(syscall.SIGKILL)
	case what < 4:
		r.signal(syscall.SIGTERM)
	case what < 6 && r.stopped.IsZero():
		r.stopped = time.Now().Add(long)
		r.signal(syscall.SIGSTOP)
	}
}

func (r *resident) signal(s syscall.Signal) { _ = r.cmd.Process.Signal(s) } // it may have ended

// ended looks at how a process ended.
func (w *town) ended(r *resident) {
	w.t.Helper()
	status, _ := r.cmd.ProcessState.Sys().(syscall.WaitStatus)
	early := status.Signaled() && status.Signal() == syscall.SIGTERM // it came before anybody could heed it
	if !r.killed && !early && r.cmd.ProcessState.ExitCode() != 0 {
		w.t.Errorf("a process ended with %v\n%s", r.cmd.ProcessState, r.errs.String())
	}
}

// patience is how long something may take that must happen.
const patience = 10 * time.Minute

// end lets all processes end in good order.
func (w *town) end() {
	w.t.Helper()
	for _, r := range w.runs {
		if r != nil {
			r.signal(syscall.SIGCONT)
			r.signal(syscall.SIGTERM)
		}
	}
	timeout := time.After(patience)
	for _, r := range w.runs {
		if r == nil {
			continue
		}
		select {
		case <-r.ended:
			w.ended(r)
		case <-timeout:
			r.signal(syscall.SIGQUIT) // its stacks
			<-r.ended
			w.t.Errorf("a process does not end\n%s", r.errs.String())
		}
	}
}

// check compares what the processes saw and did with what is recorded.
func (w *town) check() {
	w.t.Helper()
	e := enginetest.Open(w.t, file.New(w.home, file.Options{}), engine.Config{})
	sums, messages := map[string]string{}, map[string]map[p.InputID]int{} // by conversation and text: how often each was given to the model
	events := 0
	for _, id := range w.ids {
		report, err := e.Check(w.t.Context(), p.ConversationID(id))
		if err != nil || len(report.Problems)+len(report.Lost) > 0 {
			w.t.Errorf("%s: %v, %q, %q", id, err, report.Problems, report.Lost)
		}
		for ev, err := range e.Read(w.t.Context(), p.ConversationID(id)) {
			if err != nil {
				w.t.Fatal(err)
			}
			if ev.Seq > 0 {
				events++
				sums[fmt.Sprintf("%s %d", id, ev.Seq)] = sum(ev)
			}
			take := func(text string, in p.InputID, n int) {
				if messages[id+" "+text] == nil {
					messages[id+" "+text] = map[p.InputID]int{}
				}
				messages[id+" "+text][in] += n
			}
			switch b := ev.Body.(type) {
			case *p.UserMessage:
				take(p.PlainText(b.Content), b.Input, 1)
			case *p.InputAccepted:
				take(p.PlainText(b.Content), b.Input, 0)
			}
		}
	}
	for text, inputs := range messages {
		for in, n := range inputs {
			if len(inputs) != 1 || n > 1 {
				w.t.Errorf("%q was taken %d times; as message %d it was given to the model %d times", text, len(inputs), in, n)
			}
		}
	}
	sent, seen := w.checkLogs(sums, messages)
	w.checkLeft()
	w.t.Logf("%d processes, %d events recorded, %d seen, %d messages taken, %d of them known by their sender", w.next-*seed, events, seen, len(messages), sent)
}

// checkLogs looks at what each process saw.
func (w *town) checkLogs(sums map[string]string, messages map[string]map[p.InputID]int) (sent, seen int) {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.logs, "*"))
	if err != nil || len(names) == 0 {
		w.t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		last := map[string]int{}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			kind, rest, _ := strings.Cut(lines.Text(), " ")
			switch kind {
			case "event":
				seen++
				f := strings.Fields(rest)
				n, _ := strconv.Atoi(f[1]) // 0 is found below
				if n != last[f[0]]+1 || sums[f[0]+" "+f[1]] != f[2] {
					w.t.Errorf("process %s saw %s after %d; recorded is %s", filepath.Base(name), rest, last[f[0]], sums[f[0]+" "+f[1]])
				}
				last[f[0]] = n
			case "sent":
				sent++
				if messages[rest] == nil {
					w.t.Errorf("process %s sent %q, which is not recorded", filepath.Base(name), rest)
				}
			default:
				w.t.Errorf("process %s: %s", filepath.Base(name), lines.Text())
			}
		}
	}
	return sent, seen
}

// checkLeft looks for sockets and processes, and for what writers leave when there were two.
func (w *town) checkLeft() {
	w.t.Helper()
	for _, pattern := range []string{"run/*.sock", "run/.*.sock", "conversations/*/*/*/*.damaged", "conversations/*/*/*/*.rescued*", "conversations/*/*/*/*.lock"} {
		if left, err := filepath.Glob(filepath.Join(w.home, pattern)); err != nil || len(left) > 0 {
			w.t.Errorf("left behind: %v, %v", left, err)
		}
	}
	timeout := time.After(patience)
	for {
		left := w.alive()
		if len(left) == 0 {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-timeout:
			w.t.Fatalf("alive: %q", left)
		}
	}
}

// alive returns the processes that were started with our home.
func (w *town) alive() (list []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range names {
		env, err := os.ReadFile(name)
		if err == nil && bytes.Contains(env, []byte("FERMATA_HOME="+w.home+"\x00")) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
			list = append(list, filepath.Base(filepath.Dir(name))+" "+string(line))
		}
	}
	return list
}
