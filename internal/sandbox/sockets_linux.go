package sandbox

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// coverSockets hides the sockets of the user's other programs, unless they lie in
// a root of his own or the command has the network. Behind such sockets are
// programs that run what they are told: container engines, service managers,
// editors and terminal multiplexers. What is bound later is not hidden, nor is
// what was bound under a relative name; newer kernels forbid both (see
// socketRights).
func (p *plan) coverSockets() error {
	if p.Network {
		return nil
	}
	table, err := os.ReadFile("/proc/thread-self/net/unix")
	if err != nil {
		return nil // nobody can know then, or there are none
	}

	for _, name := range boundSockets(table) {
		real, err := filepath.EvalSymlinks(name)
		if err != nil || p.isOwn(real) {
			continue // not to be reached by us, so not by the command
		}
		if err := cover(real); err != nil {
			return fmt.Errorf("cover socket: %w", err)
		}
	}
	return nil
}

// boundSockets lists the paths in the kernel's table of local sockets.
func boundSockets(table []byte) []string {
	const columns = 7 // before the path, separated by single or more blanks
	seen := make(map[string]bool)
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		rest := lines.Text()
		for range columns {
			rest = afterField(rest)
		}
		if filepath.IsAbs(rest) {
			seen[rest] = true
		}
	}
	list := make([]string, 0, len(seen))
	for name := range seen {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// afterField cuts the first word and the blanks after it off.
func afterField(line string) string {
	i := 0
	for i < len(line) && line[i] != ' ' {
		i++
	}
	for i < len(line) && line[i] == ' ' {
		i++
	}
	return line[i:]
}

// isOwn reports whether name lies in a root that the user chose.
func (p *plan) isOwn(name string) bool {
	return slices.ContainsFunc(p.Own, func(root path) bool { return within(name, string(root)) })
}

// cover mounts /dev/null over a socket. One that is gone needs no cover.
func cover(name string) error {
	fd, err := openPath(name)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)

	if kind, err := kindOf(fd); err != nil || kind != unix.S_IFSOCK {
		return nil
	}
	tree, err := cloneTree(os.DevNull, false)
	if err != nil {
		return err
	}
	defer unix.Close(tree)

	err = unix.MoveMount(tree, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil && exists(name) {
		return &os.PathError{Op: "move_mount", Path: name, Err: err}
	}
	return nil
}
