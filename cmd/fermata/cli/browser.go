package cli

import (
	"os"
	"os/exec"
	"runtime"
)

// OpenBrowser opens a link: with the program that BROWSER names, else with that of the system. It does not
// wait for it.
func OpenBrowser(link string) error {
	program := os.Getenv("BROWSER")
	switch {
	case program != "":
	case runtime.GOOS == "darwin":
		program = "open"
	default:
		program = "xdg-open"
	}
	cmd := exec.Command(program, link)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // ends with the program: only so that it does not stay a zombie
	return nil
}
