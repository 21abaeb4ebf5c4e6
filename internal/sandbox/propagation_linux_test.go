package sandbox

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// sharedVariable says that the test runs among mounts that are shared.
const sharedVariable = "FERMATA_SANDBOX_SHARED"

// TestMountsStayInside confines a command on a machine whose mounts are shared, as
// service managers set them up: what is mounted in one namespace shows up in the
// others, unless one takes care.
func TestMountsStayInside(t *testing.T) {
	if os.Getenv(sharedVariable) == "" {
		runAmongSharedMounts(t)
		return
	}

	a := newAgent(t)
	w := newWorld(t)
	before := mountTable(t)
	if !strings.Contains(before, "shared:") {
		t.Fatalf("the mounts are not shared:\n%s", before)
	}
	r, out := a.run(t, w, w.confinement(t, Probe(), onlyWorkspace()), "", "grep -c $WS /proc/self/mountinfo")
	if r.ExitCode != 0 || strings.TrimSpace(out) == "0" {
		t.Errorf("the command has no mounts of its own: %+v %s", r, out)
	}
	if after := mountTable(t); after != before {
		t.Errorf("mounts came out:\n%s\nbefore:\n%s", after, before)
	}
}

func runAmongSharedMounts(t *testing.T) {
	t.Helper()
	canConfine(t)
	if os.Getuid() != 0 {
		t.Skip("an ordinary user's mounts never come out")
	}
	needs(t, "unshare")
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", "--propagation", "shared",
		exe, "-test.run=^TestMountsStayInside$", "-test.v")
	cmd.Env = append(os.Environ(), sharedVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestMountsStayInside") {
		t.Errorf("%v\n%s", err, out)
	}
}

func mountTable(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	return string(text)
}
