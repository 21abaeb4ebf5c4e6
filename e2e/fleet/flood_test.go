package fleet

import (
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

var submitters = flag.Int("submitters", 0, "how many clients TestManySubmitters starts at once; 0 is some, and only with -full")

// Many clients submit a turn at the same moment to two nodes. Each of them gets the result of its turn, and no turn runs twice.
func TestManySubmitters(t *testing.T) {
	n := *submitters
	if n == 0 {
		needsFull(t)
		n = 20
	}
	s := listen(t, &server.Options{})
	a, b, client := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	a.serve("a")
	b.serve("b")
	effects := filepath.Join(client.dir, "effects")
	var cmds []*exec.Cmd
	var outs []*output
	for i := range n {
		cmd, out := client.start("exec", "--demo", "--fleet", "-s", "danger-full-access", "--node-dir", client.dir, fmt.Sprintf("run: echo turn-%d- >> %s; echo result-%d-", i, effects, i))
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	for i, cmd := range cmds {
		if code := exitCode(cmd); code != 0 || !strings.Contains(outs[i].String(), fmt.Sprintf("result-%d-", i)) {
			t.Errorf("client %d: exit code %d: %s", i, code, outs[i])
		}
	}
	if got := lines(effects); got != n {
		t.Errorf("%d effects of %d turns", got, n)
	}
}
