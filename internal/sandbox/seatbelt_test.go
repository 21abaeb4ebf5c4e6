package sandbox

import (
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/secrets"
	"github.com/fermata-agent/fermata/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestSeatbelt reads the profile of a confinement. Nothing here can try it.
func TestSeatbelt(t *testing.T) {
	mac := Ability{System: "darwin", Seatbelt: true}
	base := tree(t, "ws/.git/refs/", "new/")
	c, err := newWith(mac, protocol.SandboxPolicy{
		Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true, WritableRoots: []string{base + "/new", base + "/ws/.git/refs"},
	}, Place{Cwd: base + "/ws"})
	check(t, err)
	if len(c.Notes()) > 0 || len(c.missing) > 0 {
		t.Errorf("notes %q, missing %q", c.Notes(), c.missing)
	}

	profile, parameters := c.plan.seatbelt()
	rest, ok := strings.CutPrefix(profile, seatbeltBase)
	want := `(allow file-write* (subpath (param "P0")))
(allow file-write* (subpath (param "P1")))
(allow file-write* (subpath (param "P2")))
(allow network-bind network-outbound (subpath (param "P3")))
(allow network-bind network-outbound (subpath (param "P4")))
(allow network-bind network-outbound (subpath (param "P5")))
(deny file-write* (subpath (param "P6")))
(deny file-write* (subpath (param "P7")))
(deny file-write* (subpath (param "P8")))
(deny file-write* (subpath (param "P9")))
(allow file-write* (subpath (param "P10")))
(allow ipc-posix-shm)
`
	if d := cmp.Diff(want, rest); !ok || d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var names []string
	for i := 1; i < len(parameters); i += 2 {
		names = append(names, strings.ReplaceAll(parameters[i], base+"/", ""))
	}
	if d := cmp.Diff([]string{
		"P0=ws", "P1=new", "P2=ws/.git/refs", "P3=ws", "P4=new", "P5=ws/.git/refs",
		"P6=ws/.git", "P7=new/.git", "P8=ws/.git/refs/.git", "P9=ws/.git/.git", "P10=ws/.git/refs",
	}, names); d != "" {
		t.Errorf("parameters (-want +got):\n%s", d)
	}
}

func TestSeatbeltModes(t *testing.T) {
	mac := Ability{System: "darwin", Seatbelt: true}
	for network, want := range map[bool]string{false: "", true: seatbeltNetwork} {
		c, err := newWith(mac, protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly, NetworkAccess: network}, Place{Cwd: "/"})
		check(t, err)
		profile, parameters := c.plan.seatbelt()
		if profile != seatbeltBase+want || len(parameters) > 0 {
			t.Errorf("network %v: profile %q, parameters %q", network, profile, parameters)
		}
	}
	for _, text := range []string{seatbeltBase, seatbeltNetwork} {
		if strings.Count(text, "(") != strings.Count(text, ")") {
			t.Errorf("parentheses do not match in %s", text)
		}
	}
}

// With network access the servers of the home that there are now cannot be reached.
func TestSeatbeltServers(t *testing.T) {
	home := t.TempDir()
	_, err := secrets.Home(home).Listen(secrets.Address{Port: 4500})
	check(t, err)
	for network, want := range map[bool]bool{false: false, true: true} {
		c, err := newWith(Ability{System: "darwin", Seatbelt: true}, protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly, NetworkAccess: network}, Place{Cwd: "/", Home: home})
		check(t, err)
		profile, _ := c.plan.seatbelt()
		if strings.Contains(profile, "(allow network*)") != want || strings.Contains(profile, "(deny network-outbound (remote ip \"*:4500\"))\n") != want {
			t.Errorf("network %v: %s", network, profile)
		}
	}
}
