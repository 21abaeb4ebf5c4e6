package sandbox

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/fermata-agent/fermata/internal/proc"
	"golang.org/x/sys/unix"
)

// seatbeltProgram does not exist here.
const seatbeltProgram = ""

// set hands the plan to Apply, through the shim.
func (p *plan) set(spec *proc.Spec) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	spec.Confine = raw
	spec.UserNamespace = p.Mounts == mountsGiven
	return nil
}

// Confiner carries confinements out, for proc.ShimMain.
func Confiner() proc.Confiner { return proc.Confiner{Apply: apply, Serve: serveSockets} }

// apply confines the calling thread, which must be locked to its goroutine, and
// what it executes, for good. After an error nothing may be executed: the
// confinement may be half done. The file is for serveSockets.
func apply(raw json.RawMessage) (*os.File, error) {
	var p plan
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, os.NewSyscallError("prctl", err)
	}

	// The order matters: each step forbids the ones before.
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"mounts", p.mount},
		{"landlock", p.restrictFiles},
		{"rights", dropRights},
	} {
		if err := step.do(); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	calls, err := p.filterCalls()
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	return calls, nil
}

// openPath opens name for use as a place. A symbolic link on the way is an error,
// since names were resolved before: a program has changed it meanwhile. As the last
// component a link stands for itself.
func openPath(name string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// kindOf says what an open file is, as one of the S_IF values.
func kindOf(fd int) (uint32, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, os.NewSyscallError("fstat", err)
	}
	return st.Mode & unix.S_IFMT, nil
}
