package protocol

import (
	"fmt"
	"os"
	"time"
)

// An Owner is the process that has a conversation open for writing. Fields that are not known are zero.
type Owner struct {
	PID     int    `json:"pid,omitempty"`     // of the process
	Host    string `json:"host,omitempty"`    // the name of its machine
	Address string `json:"address,omitempty"` // where it accepts clients on its machine; empty if it accepts none
	Node    string `json:"node,omitempty"`    // where it accepts clients on any machine; empty if it accepts none

	// Lease is how long it may be taken for alive after it has died; 0 if its death is known at once.
	Lease time.Duration `json:"lease,omitempty"`
}

// Self returns this process as an owner that accepts clients at the address.
func Self(address string) Owner {
	return Owner{PID: os.Getpid(), Host: thisHost(), Address: address}
}

// Joinable reports whether the owner accepts clients that this process can be one of.
func (o Owner) Joinable() bool { return o.Node != "" || o.IsNear() }

// IsNear reports whether the owner accepts clients on this machine.
func (o Owner) IsNear() bool { return o.Address != "" && o.IsHere() }

// IsHere reports whether the owner is on this machine.
func (o Owner) IsHere() bool { return o.Host == thisHost() }

// String names the owner for people: its machine only if it is another one.
func (o Owner) String() string {
	who := "another process"
	if o.PID != 0 {
		who = fmt.Sprintf("process %d", o.PID)
	}
	if o.Host != "" && !o.IsHere() {
		who += " on " + o.Host
	}
	return who
}

// A LockedError says which process has a conversation open.
type LockedError struct {
	Owner
}

func (e *LockedError) Error() string { return e.String() + " has this conversation open" }

// thisHost is the name of this machine, empty if it is not known.
func thisHost() string {
	host, _ := os.Hostname() // not known if that fails
	return host
}
