//go:build !linux

package main

import (
	"errors"
	"os"
)

func canMount() bool { return false }

func mountTmpfs(string, string) (undo func(), err error) {
	return nil, errors.ErrUnsupported
}

func makeReadonly(dir string) (undo func(), err error) {
	return func() { _ = os.Chmod(dir, 0o755) }, os.Chmod(dir, 0o555)
}
