//go:build unix

package engine

import "syscall"

// descriptors is how many files this process may have open; 0 if that is not known.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur)
}
