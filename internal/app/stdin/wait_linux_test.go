package stdin

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

func TestWhoCanWrite(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if fed(r) {
		t.Error("we ourselves do not count")
	}
	reader := exec.Command("sleep", "600")
	reader.Stdin = r
	writer := exec.Command("sleep", "600")
	writer.Stdout = w
	for _, cmd := range []*exec.Cmd{reader, writer} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		if got := fed(r); got != (cmd == writer) {
			t.Errorf("%v can read, or write: %t", cmd, got)
		}
	}
	_ = writer.Process.Signal(syscall.SIGKILL)
	_ = writer.Wait()
	if fed(r) {
		t.Error("the writer is gone")
	}
	if !ancestors()[os.Getppid()] || !ancestors()[os.Getpid()] || ancestors()[reader.Process.Pid] {
		t.Errorf("ancestors %v", ancestors())
	}
}
