package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// LauncherVariable names the descriptor of a pipe whose other end a launcher holds, such as
// the one of the npm package.
const LauncherVariable = "FERMATA_LAUNCHER_FD"

// FollowLauncher stops this process, as SIGTERM does, when the launcher that started it has ended:
// a launcher that is killed cannot pass a signal on. What we start has neither the pipe nor the variable.
func FollowLauncher(warn io.Writer) {
	text, ok := os.LookupEnv(LauncherVariable)
	if !ok {
		return
	}
	_ = os.Unsetenv(LauncherVariable)
	fd, err := strconv.Atoi(text)
	var state unix.Stat_t
	if err != nil || fd <= 2 || unix.Fstat(fd, &state) != nil || !isStream(state) {
		fmt.Fprintf(warn, "fermata: warning: %s=%q does not name a pipe: the end of the launcher will not be noticed\n", LauncherVariable, text)
		return
	}
	unix.CloseOnExec(fd)
	pipe := os.NewFile(uintptr(fd), "launcher")
	go func() { // for as long as the program runs
		_, _ = io.Copy(io.Discard, pipe)
		_ = unix.Kill(os.Getpid(), unix.SIGTERM)
	}()
}

// isStream reports whether a file is a pipe, or a socket, which Node makes instead.
func isStream(s unix.Stat_t) bool {
	kind := s.Mode & unix.S_IFMT
	return kind == unix.S_IFIFO || kind == unix.S_IFSOCK
}
