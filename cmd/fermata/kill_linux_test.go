package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/longtest"
	p "github.com/fermata-agent/fermata/protocol"
)

var (
	killCount = flag.Int("kills", longtest.Default(20, 4), "how often TestKillAtRandom kills the binary")
	killSeed  = flag.Uint64("killseed", 0, "what TestKillAtRandom's instants are made from; 0 takes the time")
)

// step is one command of the plan: eight lines, and for one of them a
// grandchild that neither heeds TERM nor lets go of the output.
const step = `
if [ "$1" = 3 ]; then
	sh -c 'trap "" TERM HUP INT; while :; do sleep 600; done' "$PWD" &
fi
i=1
while [ $i -le 8 ]; do
	echo "line $1.$i of $2"
	sleep 0.03
	i=$((i+1))
done
`

// plan is a turn with text and five commands.
func plan(mark string) string {
	steps := []string{"say what comes"}
	for i := range 5 {
		steps = append(steps, fmt.Sprintf("run: sh step %d %s", i+1, mark))
	}
	return "plan: " + strings.Join(steps, "; ")
}

// TestKillAtRandom kills the binary with SIGKILL at random instants. After each:
// nothing of it lives, the conversation goes on with a history that the model
// accepts, fsck finds nothing, and nothing is missing that was seen more than 100
// ms before.
func TestKillAtRandom(t *testing.T) {
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-killseed %d", seed)
	whole := planDuration(t)
	last := make(chan string, *killCount) // what had happened last, for each kill
	t.Cleanup(func() { t.Logf("killed after: %v", tally(last)) })
	for i := range *killCount {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			k := &killing{t: t, pl: newPlace(t)}
			k.pl.file("step", step)
			prompt, span := plan(fmt.Sprintf("run-%d", i)), whole
			switch i % 4 {
			default:
				k.process = k.pl.start("exec", "--demo", prompt)
			case 2: // messages and output as they arrive
				k.process = k.pl.startOnTerminal("exec", "--demo", prompt)
			case 3:
				span = 3 * time.Second
				k.process = k.pl.startOnTerminal("exec", "--demo", "talk 100")
			}
			k.kill(time.Duration(rnd.Int64N(int64(span))))
			last <- k.check()
		})
	}
}

// tally counts how often there is what.
func tally(list chan string) map[string]int {
	close(list)
	count := map[string]int{}
	for s := range list {
		count[s]++
	}
	return count
}

// planDuration is how long a plan takes here and now.
func planDuration(t *testing.T) time.Duration {
	t.Helper()
	pl := newPlace(t)
	pl.file("step", step)
	began := time.Now()
	pl.must("exec", "--demo", plan("whole"))
	return time.Since(began)
}

// A killing is one run that is killed.
type killing struct {
	*process
	t      *testing.T
	pl     *place
	after  time.Duration
	margin time.Duration
	tree   []row
	seen   string // longer before than the margin
}

// kill kills the process after a while. When this machine is so busy that it does
// not get round to us in time, neither does it to the process, so that the 100 ms are
// prolonged by a multiple of the longest time lost.
func (k *killing) kill(after time.Duration) {
	k.t.Helper()
	k.after = after
	const often = 5 * time.Millisecond
	tick := time.NewTicker(often)
	defer tick.Stop()
	began := time.Now()
	last, lost := began, time.Duration(0)
	for now := began; now.Sub(began) < after; {
		select {
		case <-tick.C:
		case <-k.done:
			k.t.Log("it ended before it could be killed")
			after = 0
		}
		now = time.Now()
		lost = max(lost, now.Sub(last)-often)
		last = now
	}
	k.tree = below(k.cmd.Process.Pid)
	at := time.Now()
	_ = k.cmd.Process.Kill()
	k.code()
	k.margin = 100*time.Millisecond + 10*lost
	k.seen = k.err.before(at.Add(-k.margin))
}

// check returns what the last event before the kill was.
func (k *killing) check() (last string) {
	t := k.t
	t.Helper()
	k.pl.noneLeft(t, k.tree) // before anything opens the conversation
	list := k.pl.conversations()
	if len(list) == 0 {
		if k.seen != "" {
			t.Errorf("after %v there is no conversation, and this was seen:\n%s", k.after, k.seen)
		}
		return "nothing"
	}
	id := string(list[0].ID)
	if last = k.nothingMissing("before it is opened again", id); last == "" {
		k.pl.must("fsck", "--repair", id) // its beginning was not durable yet: nobody was told of it
		return "nothing"
	}
	k.pl.sound(id)
	k.nothingMissing("afterwards", id)
	if left := traces(k.pl.dir); len(left) > 0 {
		t.Errorf("alive: %v", left)
	}
	return last
}

// nothingMissing checks that everything that was seen is recorded. It returns
// what was recorded last.
func (k *killing) nothingMissing(when, id string) (last string) {
	k.t.Helper()
	events := k.pl.events(id)
	text := recorded(events)
	ended := 0
	for line := range strings.SplitSeq(k.seen, "\n") {
		line = strings.TrimRight(line, "\r")
		if i := strings.LastIndex(line, "\x1b[K"); i >= 0 {
			line = line[i+len("\x1b[K"):] // what stood there before was taken off the screen
		}
		if strings.ContainsAny(line, "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏") {
			continue // the status line says how it goes, not what there is
		}
		if callEnd.MatchString(line) {
			ended++
			continue
		}
		line = ornament.ReplaceAllString(line, "")
		if !strings.Contains(text, line) {
			k.t.Errorf("killed after %v; %s this line is missing, seen more than %v before:\n%s\nall that was seen:\n%s\nrecorded:\n%s",
				k.after, when, k.margin, line, k.seen, text)
			return last
		}
	}
	outputs := 0
	for _, e := range events {
		last = p.Kind(e.Body)
		if _, ok := e.Body.(*p.ToolOutput); ok {
			outputs++
		}
	}
	if outputs < ended {
		k.t.Errorf("killed after %v; %s there are %d outputs, and %d were seen:\n%s", k.after, when, outputs, ended, k.seen)
	}
	return last
}

var (
	callEnd  = regexp.MustCompile(`^  \((ok|exit code \d+), [\d.]+ m?s\)$`)
	ornament = regexp.MustCompile(`^(\$ update_plan |\$ |  [✓▸·] |  )`)
)

// recorded is all text of a conversation. That of an open item comes in pieces,
// which are put together.
func recorded(events []p.Event) string {
	var b strings.Builder
	open := map[p.ItemID]string{}
	for _, e := range events {
		if d, ok := e.Body.(*p.Delta); ok {
			open[d.Item] += d.Text
			continue
		}
		text, err := json.Marshal(e.Body)
		var v any
		if err != nil || json.Unmarshal(text, &v) != nil {
			continue
		}
		collect(&b, v)
	}
	for _, text := range open {
		b.WriteString(text + "\n")
	}
	return b.String()
}

// collect writes down every string in a JSON value.
func collect(b *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		b.WriteString(v + "\n")
	case []any:
		for _, e := range v {
			collect(b, e)
		}
	case map[string]any:
		for _, e := range v {
			collect(b, e)
		}
	}
}

// What has the rights of another user cannot be ended by us, and it is said so: to
// the model, and to people if the turn goes on.
func TestWhatCannotBeEndedIsTold(t *testing.T) {
	t.Parallel()
	setpriv, err := exec.LookPath("setpriv")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("needs setpriv, and root who lends his rights")
	}
	for name, flags := range map[string][]string{"shell": {"-c", shellFlavour, "-c", "command_timeout_ms=3000"}, "exec_command": {"-c", execFlavour}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pl := newPlaceFor(t, nobody)
			program, err := os.ReadFile(setpriv)
			if err != nil {
				t.Fatal(err)
			}
			rise := filepath.Join(pl.work, "rise")
			if err := errors.Join(os.WriteFile(rise, program, 0o755), os.Chmod(rise, 0o755|os.ModeSetuid)); err != nil {
				t.Fatal(err)
			}
			if fs := (unix.Statfs_t{}); unix.Statfs(rise, &fs) != nil || fs.Flags&unix.ST_NOSUID != 0 {
				t.Skip("no set-uid programs here")
			}
			c := pl.start(append(append([]string{"exec", "--demo", "-s", "danger-full-access"}, flags...),
				`run: ./rise --reuid 0 sh -c 'echo $$ > risen; exec sleep 600'`)...)
			var risen row
			eventually(t, "it has risen", func() bool {
				text, _ := os.ReadFile(filepath.Join(pl.work, "risen"))
				pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
				risen, _ = readRow(pid)
				return err == nil && strings.HasSuffix(string(text), "\n") && risen.name == "sleep"
			})
			if name == "exec_command" {
				c.signal(syscall.SIGINT)
			}
			c.code()
			if !lives(risen) {
				t.Error("it was ended, so this proves nothing")
			} else if err := syscall.Kill(risen.pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			const told = "1 processes could not be ended"
			contains(t, "what the model was told", pl.sound(pl.conversation()), told)
			if name == "shell" {
				contains(t, "stderr", c.err.String(), "the command left processes running: "+told)
			}
		})
	}
}
