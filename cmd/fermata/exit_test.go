package main

import "github.com/fermata-agent/fermata/cmd/fermata/cli"

// The exit codes, by shorter names.
const (
	exitOK          = cli.ExitOK
	exitFailed      = cli.ExitFailed
	exitUsage       = cli.ExitUsage
	exitWaiting     = cli.ExitWaiting
	exitRefused     = cli.ExitRefused
	exitInterrupted = cli.ExitInterrupted
	exitTerminated  = cli.ExitTerminated
)

var exitUnread = cli.ExitStdoutClosed
