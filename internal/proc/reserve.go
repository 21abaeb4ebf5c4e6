//go:build unix

package proc

import (
	"runtime"
	"sync"
	"time"
)

// A command may use up all processes that the user may have. The Go runtime dies
// if it needs a thread then and cannot get one, and those who end the command need
// some. So room is left for them (see reserveProcesses), and because not every
// limit is one that we can lower, those that are needed are started before. In a shim,
// which shares the limit of its namespace with the command, that is before the command
// begins; fermata does so for commands that do not end at once.
const (
	reserveDelay = 200 * time.Millisecond

	shimThreads = 6  // besides those that it always has
	ownThreads  = 16 // of fermata, which does other things as well
)

// reserveThreads starts threads, which the runtime keeps and uses when it needs
// some.
func reserveThreads(n int) {
	var started, ended sync.WaitGroup
	leave := make(chan struct{})
	for range n {
		started.Add(1)
		ended.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			started.Done()
			<-leave
		})
	}
	started.Wait()
	close(leave)
	ended.Wait()
}

// reserveOwnThreads does it once for this process.
var reserveOwnThreads = sync.OnceFunc(func() { reserveThreads(ownThreads) })
