//go:build !linux && !darwin && !freebsd

package remote

import "net"

// peer knows nothing here: the mode of the directory keeps others out.
func peer(*net.UnixConn) (pid int, err error) { return 0, nil }
