package sandbox

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

const nobody = 65534

// TestAsOrdinaryUser runs the tests of this package again as nobody.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the user")
	}
	longtest.Only(t) // it runs everything again

	dir := newDir(t)
	must(t, os.Chmod(dir, 0o777))
	id, err := exec.LookPath("id")
	must(t, err)
	setuid := copyFile(t, id, filepath.Join(dir, "id"), 0o755|os.ModeSetuid)
	self := copyFile(t, "/proc/self/exe", filepath.Join(dir, "sandbox.test"), 0o755)
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.short", "-test.timeout=9m")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + dir, "HOME=" + dir, setuidVariable + "=" + setuid, longtest.Variable + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as nobody: %v\n%s", err, failures(out))
	}
	for _, want := range []string{"--- PASS: TestEscapes/a_set-uid_program", "--- PASS: TestEscapes/add_a_hook"} {
		if Probe().Mounts && !strings.Contains(string(out), want) {
			t.Errorf("missing %q:\n%s", want, out)
		}
	}
}

// copyFile makes a copy that anybody can execute.
func copyFile(t *testing.T, from, to string, mode os.FileMode) string {
	t.Helper()
	src, err := os.Open(from)
	must(t, err)
	defer src.Close()
	dst, err := os.Create(to)
	must(t, err)
	_, err = io.Copy(dst, src)
	must(t, errors.Join(err, dst.Close(), os.Chmod(to, mode)))
	return to
}

// failures leaves out what passed.
func failures(out []byte) string {
	var b strings.Builder
	for line := range strings.Lines(string(out)) {
		if text := strings.TrimSpace(line); !strings.HasPrefix(text, "=== ") && !strings.HasPrefix(text, "--- PASS") {
			b.WriteString(line)
		}
	}
	return b.String()
}
