package file

import "github.com/fermata-agent/fermata/internal/journal/file/disk"

// What a store needs of a file system, so that tests can bring their own.
type (
	FS   = disk.FS
	File = disk.File
	OS   = disk.OS
)

// A NotRegularError says that something else than a regular file is in the place of one.
type NotRegularError = disk.NotRegularError
