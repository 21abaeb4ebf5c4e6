// Command tiny stands for the program in tests of what is built around it.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

var release = "none"

func main() {
	args := append(os.Args[1:], "", "")
	switch args[0] {
	case "man":
		if err := os.WriteFile(filepath.Join(os.Args[3], "tiny.1"), []byte(".TH TINY 1\n"), 0o644); err != nil {
			panic(err)
		}
	case "completion":
		fmt.Println("# completes in", args[1])
	case "exit":
		code, _ := strconv.Atoi(args[1])
		os.Exit(code)
	case "die":
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	case "wait": // for a signal, or the end of the launcher
		wait(args[1])
	default:
		fmt.Println(release)
	}
}

// wait writes to a pipe how it ended.
func wait(result string) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	ended := make(chan string, 1)
	go func() {
		fd, _ := strconv.Atoi(os.Getenv("FERMATA_LAUNCHER_FD"))
		_, _ = io.Copy(io.Discard, os.NewFile(uintptr(fd), "launcher"))
		ended <- "launcher ended"
	}()
	fmt.Println("waits")
	why := ""
	select {
	case s := <-signals:
		why = s.String()
	case why = <-ended:
	}
	if err := os.WriteFile(result, []byte(why), 0o600); err != nil {
		panic(err)
	}
	os.Exit(7)
}
