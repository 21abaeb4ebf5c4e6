package tool

import (
	"os"
	"sync"
)

// interpreters are where a shell may be, the best first. Some systems have bash
// elsewhere than most (BSD, NixOS), some have none (Alpine).
var interpreters = []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash", "/bin/sh"}

// Interpreter is the shell that runs command lines on this machine.
var Interpreter = sync.OnceValue(func() string {
	return interpreter(func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.Mode().IsRegular()
	})
})

func interpreter(exists func(string) bool) string {
	for _, name := range interpreters {
		if exists(name) {
			return name
		}
	}
	return interpreters[0] // the error of a command names it
}
