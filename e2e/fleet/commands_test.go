package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// A confined command with network access does not reach the NATS servers that its fermata uses, nor does it join the fleet
// by running fermata, unless the configuration lets commands connect.
func TestCommandsDoNotReachTheServers(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{}) // without credentials, so that whoever connects is let in
	port := s.Addr().String()[strings.LastIndex(s.Addr().String(), ":")+1:]
	network := append(turn, "-s", "workspace-write", "-c", "sandbox_workspace_write.network_access=true")
	for _, allowed := range []bool{false, true} {
		m := newMachine(t, s.ClientURL(), fmt.Sprintf("commands_may_connect = %t", allowed))
		for _, host := range []string{"127.0.0.1", "0.0.0.0", "localhost"} {
			command := fmt.Sprintf(`run: bash -c 'exec 3<>/dev/tcp/%s/%s && head -c 4 <&3; echo over'`, host, port)
			out, err := m.run(append(network, command)...)
			if err != nil || !strings.Contains(out, "over") || strings.Contains(out, "INFO") != allowed {
				t.Errorf("%s, allowed %t: %v\n%s", host, allowed, err, out)
			}
		}
		out, err := m.run(append(network, "run: FERMATA_HOME="+m.home+" "+m.fermata+" list --json; echo over")...)
		if err != nil || !strings.Contains(out, "over") || strings.Contains(out, `"id"`) != allowed {
			t.Errorf("fermata in a command, allowed %t: %v\n%s", allowed, err, out)
		}
	}
}
