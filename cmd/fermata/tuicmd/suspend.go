package tuicmd

import (
	"errors"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// stopTime is how long the system may take to stop us.
const stopTime = 300 * time.Millisecond

var errNoShell = errors.New("there is no shell to return to")

// suspend stops this process, and what the shell started with it, until the
// shell goes on with it. Where none could (a process group without a parent in its
// session) the system does not stop us, and it returns an error.
func suspend() error {
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, unix.SIGCONT)
	defer signal.Stop(resumed)
	if err := unix.Kill(0, unix.SIGTSTP); err != nil {
		return err
	}
	late := time.NewTimer(stopTime)
	defer late.Stop()
	select {
	case <-resumed:
		return nil
	case <-late.C: // which also runs out while we are stopped
	}
	select {
	case <-resumed:
		return nil
	case <-time.After(stopTime):
		return errNoShell
	}
}
