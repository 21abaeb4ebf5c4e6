package tree

import (
	"cmp"
	"fmt"
	"syscall"
	"time"
)

// reclaimBound is the longest that each of the three steps of Reclaim takes.
const reclaimBound = time.Second

// lateBound is how long those that were killed and wait for a processor are waited for beyond a bound.
const lateBound = 10 * time.Second

// Reclaim ends what is left of a command whose fermata has died, and waits until
// it is gone. It returns how many processes it found, not counting the shim.
//
// A shim that lives ends its tree by itself, politely; it is only given the time.
// Without one the rest is halted first, so that no process can slip away while
// others die, and then killed.
//
// It acts only on processes that are proven to belong to the command: the shim
// and the leader (same number, start time and boot), their descendants,
// processes that carry the command's mark in their limits or its token in their
// environment (as far as we may look into them), their descendants, and the
// command's session if its number is known and its leader, or a member of it that is marked, is among them.
// What can escape, therefore, is a process that lowered its limit of file locks,
// emptied its environment and leads a session of its own, if fermata, the shim and
// every ancestor of it were dead before Reclaim was called: it cannot be distinguished from
// a stranger. Where the command has a PID namespace or a cgroup nothing can escape.
//
// Never call it for a command whose fermata still runs.
func Reclaim(id Identity) (killed int, err error) {
	boot, err := BootID()
	if err != nil {
		return 0, fmt.Errorf("reclaim process %d: %w", id.PID, err)
	}
	if id.Boot != boot {
		return 0, nil // everything of that boot is gone
	}

	found := make(map[int]Process)
	look := lookFor(id, found)
	awaitShim(id, look)
	for _, p := range inCgroup(id.Cgroup) {
		found[p.PID] = p
	}
	killCgroup(id.Cgroup)
	defer removeCgroup(id.Cgroup)
	freeze(look)
	all := &Ladder{
		Bound: reclaimBound, Late: lateBound, Tree: look, Signal: Signal,
		// A token may be handed on to strangers, and a group has many members.
		SignalGroup: func(int, syscall.Signal) error { return nil },
	}
	_, left := all.Run()
	all.Tree = func() ([]Process, error) { return shimOf(id), nil }
	_, shimLeft := all.Run()
	if left += shimLeft; left > 0 {
		return len(found), fmt.Errorf("reclaim process %d: %d %w", id.PID, left, ErrSurvivors)
	}
	return len(found), nil
}

// endLimit is how long End waits for a shim, which has its own bound, but on a busy machine may exceed it.
const endLimit = time.Minute

// End ends a command whose fermata may still run, from any process, and waits
// until its supervisor is gone. It returns false if there is none: then the
// command has ended, or Reclaim finds what is left of it.
func End(id Identity) (bool, error) {
	boot, err := BootID()
	if err != nil {
		return false, fmt.Errorf("end process %d: %w", id.PID, err)
	}
	shim := shimOf(id)
	if id.Boot != boot || len(shim) == 0 {
		return false, nil
	}
	_ = Signal(shim[0], syscall.SIGCONT) // another process may have halted it
	if err := Signal(shim[0], EndSignal); err != nil {
		return false, fmt.Errorf("end process %d: %w", id.PID, err)
	}
	l := &Ladder{Tree: func() ([]Process, error) { return shimOf(id), nil }}
	if !l.await(endLimit) {
		return false, fmt.Errorf("end process %d: %w", id.PID, ErrSurvivors)
	}
	return true, nil
}

// Running reports whether a command is supervised: it has not ended.
func Running(id Identity) bool {
	boot, err := BootID()
	return err == nil && id.Boot == boot && len(shimOf(id)) > 0
}

// CommandPID is the number of the process that a running command began with, or
// zero. Where it is not part of the identity, to find it takes a look
// at the process table, which is too much for every command.
func CommandPID(id Identity) int {
	if id.Leader != 0 || !Running(id) {
		return id.Leader
	}
	table, err := Table()
	if err != nil {
		return 0
	}
	return leaderBelow(id.PID, table).PID
}

// leaderBelow is the process that a shim started. What it adopts may lead a session,
// too, but is younger; of two that began at the same tick of the clock, so is the
// one with the greater number.
func leaderBelow(shim int, table []Process) Process {
	var first Process
	for _, p := range table {
		if p.PPID != shim || p.Session != p.PID {
			continue
		}
		if first.PID == 0 || cmp.Or(cmp.Compare(p.Start, first.Start), cmp.Compare(p.PID, first.PID)) < 0 {
			first = p
		}
	}
	return first
}

// awaitShim gives a living shim the time to end its Tree: its lifeline is cut.
// Another process may have halted it.
func awaitShim(id Identity, look func() ([]Process, error)) {
	for _, p := range shimOf(id) {
		_ = Signal(p, syscall.SIGCONT)
	}
	l := &Ladder{Tree: func() ([]Process, error) {
		list, err := look()
		if len(shimOf(id)) == 0 {
			return nil, err // no process to wait for
		}
		return append(list, shimOf(id)...), err
	}}
	l.await(reclaimBound)
}

// freeze halts what look finds until it finds no new process.
func freeze(look func() ([]Process, error)) {
	frozen := make(map[int]bool)
	for deadline := time.Now().Add(reclaimBound); time.Now().Before(deadline); {
		list, err := look()
		if err != nil {
			return
		}
		before := len(frozen)
		for _, p := range list {
			if !frozen[p.PID] && Signal(p, syscall.SIGSTOP) == nil {
				frozen[p.PID] = true
			}
		}
		if len(frozen) == before {
			return
		}
	}
}
