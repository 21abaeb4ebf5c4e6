//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package tuicmd

import "golang.org/x/sys/unix"

const setTermios = unix.TIOCSETA
