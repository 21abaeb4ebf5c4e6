package tuicmd

import "golang.org/x/sys/unix"

const setTermios = unix.TCSETS
