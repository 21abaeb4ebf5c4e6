//go:build !linux

package main

import "errors"

func canMount() bool { return false }

func mountTmpfs(string, string) (undo func(), err error) {
	return nil, errors.ErrUnsupported
}

func makeReadonly(dir string) (undo func(), err error) {
	return func() { _ = chmodDirs(dir, 0o755) }, chmodDirs(dir, 0o555)
}
