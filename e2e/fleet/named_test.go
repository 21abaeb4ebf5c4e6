package fleet

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// lines returns how many lines a file has; 0 if there is none.
func lines(name string) int {
	text, _ := os.ReadFile(name)
	return strings.Count(string(text), "\n")
}

// A script that runs the same command with the same --id again has submitted one turn, and gets its result each time.
func TestSameIDIsTheSameTurn(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	worker, client := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	effects := filepath.Join(worker.dir, "effects")
	command := func(prompt string, more ...string) []string {
		return append([]string{"exec", "--demo", "--fleet", "--id", "nightly-1", "--node-dir", worker.dir, prompt}, more...)
	}
	prompt := fmt.Sprintf("run: echo once | tee -a %s", effects)

	// What was given up before a machine has begun it can be submitted again under the same name.
	if out, err := client.run(command(prompt, "--wait", "0")...); err == nil || !strings.Contains(out, "nothing has run") {
		t.Errorf("without a node: %v: %s", err, out)
	}
	worker.serve("w")
	first, second := client.must(command(prompt)...), newMachine(t, s.ClientURL()).must(command(prompt)...)
	for _, out := range []string{first, second} {
		if !strings.Contains(out, "once") || lines(effects) != 1 {
			t.Errorf("%d effects; it printed %s", lines(effects), out)
		}
	}
	if out := client.must("list"); strings.Count(out, "\n") != 2 { // with the heading
		t.Errorf("list: %s", out)
	}
	cmd, out := client.start(command("run: echo other")...)
	if code := exitCode(cmd); code != 2 || !strings.Contains(out.String(), "stands for another turn") {
		t.Errorf("another prompt under the same id: exit code %d: %s", code, out)
	}
}

// A client that cannot find out whether its turn was withdrawn says so, with an exit code of its own. The turn is not lost:
// a node runs it, once, and the same command shows what became of it.
func TestUnknownIsNotFailed(t *testing.T) {
	needsFull(t)
	s := listen(t, &server.Options{})
	link := newProxy(t, s.Addr().(*net.TCPAddr).Port)
	worker, client := newMachine(t, s.ClientURL()), newMachine(t, link.url())
	effects := filepath.Join(worker.dir, "effects")
	command := []string{"exec", "--demo", "--fleet", "--id", "x", "--node-dir", worker.dir, "run: echo once | tee -a " + effects}
	cmd, out := client.start(command...)
	eventually(t, "it waits", func() bool { return strings.Contains(out.String(), "waiting for one") })
	link.cut()
	_ = cmd.Process.Signal(syscall.SIGINT)
	if code := exitCode(cmd); code != 5 || !strings.Contains(out.String(), "may have been submitted: ") {
		t.Errorf("exit code %d: %s", code, out)
	}
	link.mend()
	worker.serve("w")
	if again := client.must(command...); !strings.Contains(again, "once") || lines(effects) != 1 {
		t.Errorf("%d effects; it printed %s", lines(effects), again)
	}
}
