//go:build !linux && !darwin && !freebsd

package remote

import "net"

// sameUser is not known here: the mode of the directory keeps others out.
func sameUser(*net.UnixConn) error { return nil }
