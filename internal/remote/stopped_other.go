//go:build !linux

package remote

// runs is not known here.
func runs(int) bool { return false }
