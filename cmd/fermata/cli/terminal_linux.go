package cli

import "golang.org/x/sys/unix"

// GetTermios is the request that reads the state of a terminal.
const GetTermios = unix.TCGETS
