package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/longtest"
)

const helloLine = `{"id":1,"method":"hello","params":{"oldest":1,"newest":1}}` + "\n"

// dialOwner connects to the process that listens in the home.
func (pl *place) dialOwner() net.Conn {
	pl.t.Helper()
	var conn net.Conn
	eventually(pl.t, "somebody listens", func() bool {
		for _, name := range pl.sockets() {
			var err error
			if conn, err = net.Dial("unix", name); err == nil {
				return true
			}
		}
		return false
	})
	pl.t.Cleanup(func() { conn.Close() })
	return conn
}

// pour writes until all is written, or no client reads it any more.
func pour(conn net.Conn, text string, times int) {
	for range times {
		_ = conn.SetWriteDeadline(time.Now().Add(2 * time.Second))
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
	}
}

// Clients that send garbage, floods and huge lines, and that never read, neither end nor hold up the process that
// they connect to, nor do they cost it more memory than some large messages.
func TestHostileClientsOfAnOwner(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	open := pl.fifo("fifo")
	owner := pl.start("exec", "--demo", "run: echo begun; cat fifo; echo over")
	id := pl.conversation()
	pl.awaitText(id, "begun")
	var attacks sync.WaitGroup
	for _, attack := range []func(net.Conn){
		func(c net.Conn) { pour(c, strings.Repeat("\xff\x00{[garbage\n", 1000), 30) },
		func(c net.Conn) {
			pour(c, helloLine, 1)
			pour(c, strings.Repeat(fmt.Sprintf(`{"id":2,"method":"resume","params":{"id":%q}}`+"\n", id), 1000), 20)
		},
		func(c net.Conn) {
			pour(c, helloLine, 1)
			pour(c, strings.Repeat("x", 1<<20), 80)
			pour(c, "\n", 1)
		},
		func(c net.Conn) { // it never reads
			pour(c, helloLine+fmt.Sprintf(`{"id":2,"method":"attach","params":{"id":%q,"stream":1}}`+"\n", id), 1)
			pour(c, strings.Repeat(`{"id":3,"method":"next","params":{"stream":1}}`+"\n", 1000), 10)
		},
		func(net.Conn) {}, // it says nothing
	} {
		for range longtest.Default(3, 1) {
			conn := pl.dialOwner()
			attacks.Go(func() { attack(conn) })
		}
	}
	if _, errs, code := pl.run("send", id, "say this"); code != 0 || !strings.Contains(errs, "steered into turn 1") {
		t.Errorf("meanwhile: exit code %d: %s", code, errs)
	}
	attacks.Wait()
	late := pl.dialOwner()
	pour(late, helloLine, 1)
	if line, err := bufio.NewReader(late).ReadString('\n'); err != nil || !strings.Contains(line, `"version":1`) {
		t.Errorf("afterwards: %q, %v", line, err)
	}
	if peak := peakMemory(t, owner.cmd.Process.Pid); peak > 800<<10 { // each line may have 64 MiB
		t.Errorf("the owner took %d KiB", peak)
	}
	open()
	if code := owner.code(); code != 0 {
		t.Errorf("exit code %d\n%s", code, owner.err.String())
	}
	contains(t, "owner", owner.out.String()+owner.err.String(), "over")
	pl.fsck(id)
	if left := pl.sockets(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// peakMemory is the most that a process had in memory, in KiB.
func peakMemory(t *testing.T, pid int) (kib int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		_, _ = fmt.Sscanf(string(line), "VmHWM: %d kB", &kib) // the others are not of this form
	}
	return kib
}

// Another user gets nowhere, also if the files would let it.
func TestAnotherUserCannotJoin(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	pl := newPlace(t)
	owner := pl.start("exec", "--demo", "run: echo begun; exec sleep 1000")
	id := pl.conversation()
	pl.awaitText(id, "begun")
	err := filepath.WalkDir(filepath.Join(pl.dir, "home"), func(name string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(name, 0o777)
	})
	if err != nil {
		t.Fatal(err)
	}
	other := *pl
	other.user = newPlaceFor(t, nobody).user
	_, errs, code := other.run("interrupt", id)
	if code != exitFailed || !strings.Contains(errs, "belongs to another user") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	pl.must("interrupt", id)
	owner.code()
}
