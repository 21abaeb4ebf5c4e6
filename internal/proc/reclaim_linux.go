package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Reclaim ends what is left of a command whose fermata has died, and waits until
// it is gone. It returns how many processes it found, not counting the shim.
//
// A shim that lives ends its tree by itself, politely; it is only given the time.
// Without one the rest is halted first, so that nobody can slip away while
// others die, and then killed.
//
// It acts only on processes that are proven to belong to the command: the shim
// and the leader (same number, start time and boot), their descendants,
// processes that carry the command's token in their environment (as far as we
// may look into them), their descendants, and the command's session if its
// leader or a member with the token is among them. What can escape, therefore,
// is a process that emptied its environment and leads a session of its own, if
// fermata, the shim and every ancestor of it were dead before Reclaim was called:
// it cannot be told from a stranger. With Spec.PIDNamespace nothing can escape.
//
// Never call it for a command whose fermata still runs.
func Reclaim(id Identity) (killed int, err error) {
	boot, err := bootID()
	if err != nil {
		return 0, fmt.Errorf("reclaim process %d: %w", id.PID, err)
	}
	if id.Boot != boot {
		return 0, nil // everything of that boot is gone
	}

	found := make(map[int]process)
	look := lookFor(id, found)
	awaitShim(id, look)
	freeze(look)
	all := &ladder{
		bound: defaultBound / 2, tree: look, signal: signalProcess,
		// A token may be handed on to strangers, and a group has many members.
		signalGroup: func(int, syscall.Signal) error { return nil },
	}
	_, left := all.run()
	all.tree = func() ([]process, error) { return shimOf(id), nil }
	_, shimLeft := all.run()
	if left += shimLeft; left > 0 {
		return len(found), fmt.Errorf("reclaim process %d: %d %w", id.PID, left, ErrSurvivors)
	}
	return len(found), nil
}

// endLimit is how long End waits for a shim, which has its own bound.
const endLimit = 10 * time.Second

// End ends a command whose fermata may still run, from any process, and waits
// until its supervisor is gone. It returns false if there is none: then the
// command has ended, or Reclaim finds what is left of it.
func End(id Identity) (bool, error) {
	boot, err := bootID()
	if err != nil {
		return false, fmt.Errorf("end process %d: %w", id.PID, err)
	}
	shim := shimOf(id)
	if id.Boot != boot || len(shim) == 0 {
		return false, nil
	}
	_ = signalProcess(shim[0], syscall.SIGCONT) // somebody may have halted it
	if err := signalProcess(shim[0], endSignal); err != nil {
		return false, fmt.Errorf("end process %d: %w", id.PID, err)
	}
	l := &ladder{tree: func() ([]process, error) { return shimOf(id), nil }}
	if !l.await(endLimit) {
		return false, fmt.Errorf("end process %d: %w", id.PID, ErrSurvivors)
	}
	return true, nil
}

// Running reports whether a command is supervised: it has not ended.
func Running(id Identity) bool {
	boot, err := bootID()
	return err == nil && id.Boot == boot && len(shimOf(id)) > 0
}

// CommandPID is the number of the process that a running command began with, or
// zero. In a PID namespace it is not part of the identity: to find it takes a look
// at the process table, which is too much for every command.
func CommandPID(id Identity) int {
	table, err := processTable()
	if id.Leader != 0 || err != nil || !Running(id) {
		return id.Leader
	}
	var first process
	for _, p := range table {
		// What the shim adopts may lead a session, too, but is younger.
		if p.ppid == id.PID && p.session == p.pid && (first.pid == 0 || p.start < first.start) {
			first = p
		}
	}
	return first.pid
}

// lookFor returns a function that lists the leftovers of id and notes them in
// found. What was found once stays on the list while it lives, also when those
// who proved that it belongs here are dead.
func lookFor(id Identity, found map[int]process) func() ([]process, error) {
	return func() ([]process, error) {
		table, err := processTable()
		if err != nil {
			return nil, err
		}
		for _, p := range leftovers(table, id, carriesToken) {
			found[p.pid] = p
		}
		var list []process
		for _, p := range table {
			if known, ok := found[p.pid]; ok && known.start == p.start {
				list = append(list, p)
			}
		}
		return alive(list), nil
	}
}

// shimOf returns the shim if it lives.
func shimOf(id Identity) []process {
	p, err := readProcess(id.PID)
	if err != nil || p.start != id.Start || p.dead() {
		return nil
	}
	return []process{p}
}

// awaitShim gives a living shim the time to end its tree: its lifeline is cut.
// Somebody may have halted it.
func awaitShim(id Identity, look func() ([]process, error)) {
	for _, p := range shimOf(id) {
		_ = signalProcess(p, syscall.SIGCONT)
	}
	l := &ladder{tree: func() ([]process, error) {
		list, err := look()
		if len(shimOf(id)) == 0 {
			return nil, err // nobody to wait for
		}
		return append(list, shimOf(id)...), err
	}}
	l.await(defaultBound / 2)
}

// freeze halts what look finds until it finds nobody new.
func freeze(look func() ([]process, error)) {
	frozen := make(map[int]bool)
	for deadline := time.Now().Add(defaultBound / 2); time.Now().Before(deadline); {
		list, err := look()
		if err != nil {
			return
		}
		before := len(frozen)
		for _, p := range list {
			if !frozen[p.pid] && signalProcess(p, syscall.SIGSTOP) == nil {
				frozen[p.pid] = true
			}
		}
		if len(frozen) == before {
			return
		}
	}
}

// leftovers picks the command's living processes out of table, but not the shim:
// it must live longest, because orphans fall to it and stay known. carries looks
// into environments.
func leftovers(table []process, id Identity, carries func(process, string) bool) []process {
	proven := make(map[int]bool)
	var roots []int
	sessionIsOurs := false
	for _, p := range table {
		switch {
		case p.pid == id.PID && p.start == id.Start:
			roots = append(roots, p.pid)
		case p.pid == id.Leader && p.start == id.LeaderStart:
			proven[p.pid], sessionIsOurs = true, true
		case p.start >= id.Start && carries(p, id.Token):
			proven[p.pid] = true
			// The number of a session is not given away while it has members.
			sessionIsOurs = sessionIsOurs || p.session == id.Leader
		}
	}
	for _, p := range table {
		if sessionIsOurs && id.Leader != 0 && p.session == id.Leader {
			proven[p.pid] = true
		}
	}
	for pid := range proven {
		roots = append(roots, pid)
	}
	for _, p := range descendants(table, roots...) {
		proven[p.pid] = true
	}

	spare(proven, table)
	var found []process
	for _, p := range table {
		if proven[p.pid] {
			found = append(found, p)
		}
	}
	return alive(found)
}

// spare takes this process and its ancestors out: fermata may have been started
// again from what its predecessor left.
func spare(proven map[int]bool, table []process) {
	parent := make(map[int]int, len(table))
	for _, p := range table {
		parent[p.pid] = p.ppid
	}
	for pid := os.Getpid(); pid > 0; pid = parent[pid] {
		delete(proven, pid)
	}
}

// carriesToken reports whether p has the token in its environment. That of
// another user's process can be read by root only.
func carriesToken(p process, token string) bool {
	if token == "" {
		return false
	}

	env, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		value, found := strings.CutPrefix(string(kv), tokenVariable+"=")
		if found && hasToken(value, token) {
			return true
		}
	}
	return false
}

// hasToken looks for token in a list.
func hasToken(list, token string) bool {
	for t := range strings.SplitSeq(list, ",") {
		if t == token {
			return true
		}
	}
	return false
}
