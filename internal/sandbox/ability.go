package sandbox

import (
	"fmt"
	"strings"

	"github.com/fermata-agent/fermata/protocol"
)

// Ability is what this machine can do for confinement.
type Ability struct {
	// System is the operating system.
	System string `json:"system"`

	// Seatbelt is true on a Mac with sandbox-exec. The other fields are about
	// Linux.
	Seatbelt bool `json:"seatbelt,omitempty"`

	// Landlock is the version of the kernel's Landlock interface, 0 if there is
	// none.
	Landlock int `json:"landlock"`

	// Seccomp is true if system calls can be filtered, on this architecture.
	Seccomp bool `json:"seccomp"`

	// Sockets is true if commands can have local sockets of their own, see
	// socketServer. Without it they have none but pairs.
	Sockets bool `json:"sockets"`

	// Mounts is true if a command can have a mount namespace; ByUser if it needs
	// a user namespace for it, as an ordinary user does.
	Mounts bool `json:"mounts"`
	ByUser bool `json:"by_user,omitempty"`

	// MountsError says why there is no mount namespace.
	MountsError string `json:"mounts_error,omitempty"`

	outside string // our own mount namespace
}

// The versions of Landlock that brought something.
const (
	landlockFiles    = 1
	landlockRefer    = 2
	landlockTruncate = 3
	landlockNetwork  = 4
	landlockDevices  = 5
	landlockScopes   = 6
)

// Missing says why this machine cannot confine at all; it is empty if it can.
func (a Ability) Missing() string {
	switch {
	case a.Seatbelt:
		return ""
	case a.System == "darwin":
		return "there is no " + seatbeltProgram
	case a.System != "linux":
		return "confinement is not known for " + a.System
	case a.Landlock < landlockFiles:
		return "the kernel has no Landlock (Linux 5.13 with lsm=landlock), or forbids it here"
	case !a.Seccomp:
		return "system calls cannot be filtered (seccomp) here"
	}
	return ""
}

// mounts says where the mount namespace of a command comes from.
func (a Ability) mounts() mounts {
	switch {
	case !a.Mounts:
		return mountsNone
	case a.ByUser:
		return mountsGiven
	}
	return mountsOwn
}

// limits says what commands can do in spite of a mode.
func (a Ability) limits(mode protocol.SandboxMode) []string {
	if a.System != "linux" {
		return nil
	}

	var list []string
	if !a.Mounts {
		list = append(list, "commands can change mode, owner, times and attributes of the user's files everywhere: "+
			"there is no mount namespace ("+a.MountsError+")")
	}
	if !a.Mounts && a.Landlock < landlockTruncate {
		list = append(list, fmt.Sprintf("commands can cut the user's files short everywhere: Landlock has version %d, not %d", a.Landlock, landlockTruncate))
	}
	if a.Landlock < landlockRefer && mode == protocol.SandboxWorkspaceWrite {
		list = append(list, fmt.Sprintf("commands cannot move files from one directory to another: Landlock has version %d, not %d", a.Landlock, landlockRefer))
	}
	if a.Landlock < landlockScopes {
		list = append(list, fmt.Sprintf("commands can signal the user's other processes if they see them: Landlock has version %d, not %d",
			a.Landlock, landlockScopes))
	}
	if !a.Sockets {
		list = append(list, "commands cannot use local sockets, not even their own, and with network access they reach fermata's own servers: the kernel does not let system calls be served here (seccomp notifications, ptrace_scope)")
	}
	return list
}

// Lines describes the ability for people, one fact on each.
func (a Ability) Lines() []string {
	if a.System != "linux" {
		if missing := a.Missing(); missing != "" {
			return []string{"commands cannot be confined: " + missing}
		}
		return []string{"commands can be confined with Seatbelt"}
	}

	first := "commands can be confined"
	if missing := a.Missing(); missing != "" {
		first = "commands cannot be confined: " + missing
	}
	lines := []string{
		first,
		fmt.Sprintf("Landlock: version %d", a.Landlock),
		"seccomp: " + yesNo(a.Seccomp),
		"local sockets of their own: " + yesNo(a.Sockets),
		"mount namespace: " + a.mountsWords(),
	}
	return append(lines, a.limits(protocol.SandboxWorkspaceWrite)...)
}

func (a Ability) mountsWords() string {
	switch {
	case a.Mounts && a.ByUser:
		return "yes, in a user namespace"
	case a.Mounts:
		return "yes"
	}
	return strings.TrimSpace("no " + a.MountsError)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
