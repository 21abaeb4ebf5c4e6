package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/secrets"
	"github.com/fermata-agent/fermata/protocol"
)

// ErrUnable is returned by New when this machine cannot confine at all. It is
// wrapped in words that say what is missing.
var ErrUnable = errors.New("this machine cannot confine commands")

// Place is where commands run.
type Place struct {
	// Cwd is the working directory that the user chose. It becomes writable, so
	// it must never be one that the model asked for.
	Cwd string

	// Home is fermata's own directory, or empty. It need not exist: it is made
	// where a command could make it.
	Home string

	// OtherHomes are those that other runs of fermata may use.
	OtherHomes []string

	// Guarded are other files that fermata reads or executes. Commands cannot
	// change them or the links that lead to them.
	Guarded []string

	// Secrets are other files with keys, which commands cannot read.
	Secrets []string

	// Env is the environment of the commands; only TMPDIR matters.
	Env []string

	// PIDNamespace hides other processes from the commands, where it can be had.
	// The confinement does not depend on it.
	PIDNamespace bool
}

// tmpdir is the value of TMPDIR, or empty.
func (p Place) tmpdir() string {
	dir := ""
	for _, kv := range p.Env {
		if v, ok := strings.CutPrefix(kv, "TMPDIR="); ok {
			dir = v
		}
	}
	return dir
}

// Confinement is what one command is confined to. A nil Confinement is that of
// full access: its methods work and do nothing.
type Confinement struct {
	plan    plan
	pids    bool     // in a PID namespace
	missing []string // protected paths that did not exist
	notes   []string
}

// New says how commands are confined under policy. For full access it returns
// nil. It looks at the file system, so it should be called for every command.
func New(policy protocol.SandboxPolicy, place Place) (*Confinement, error) {
	if policy.Mode == protocol.SandboxFullAccess {
		return nil, nil
	}
	return newWith(Probe(), policy, place)
}

// newWith is New on a machine with the given ability.
func newWith(a Ability, policy protocol.SandboxPolicy, place Place) (*Confinement, error) {
	if policy.Mode != protocol.SandboxReadOnly && policy.Mode != protocol.SandboxWorkspaceWrite {
		return nil, fmt.Errorf("sandbox: unknown mode %q", policy.Mode)
	}
	if missing := a.Missing(); missing != "" {
		return nil, fmt.Errorf("%w: %s", ErrUnable, missing)
	}

	l := newLayout(policy, place)
	if a.Seatbelt { // which judges names, so what does not exist can be forbidden
		l.protected, l.missing = append(l.protected, l.missing...), nil
	}
	hidden, notes := hiddenFrom(l.homes, place.Secrets)
	c := &Confinement{
		plan: plan{
			Network:   policy.NetworkAccess,
			Mounts:    a.mounts(),
			Outside:   a.outside,
			Roots:     paths(l.roots),
			Own:       paths(l.own),
			Protected: paths(l.protected),
			Secret:    paths(hidden),
			Homes:     paths(l.homes),
			Shm:       policy.Mode == protocol.SandboxWorkspaceWrite,
			Sockets:   a.Sockets,
		},
		pids:    place.PIDNamespace,
		missing: l.missing,
		notes:   slices.Concat(a.limits(policy.Mode), l.notes, notes),
	}
	if a.Seatbelt && policy.NetworkAccess {
		for _, home := range l.homes {
			c.plan.Ports = append(c.plan.Ports, secrets.Home(home).Ports()...)
		}
	}
	if c.plan.Mounts != mountsNone {
		c.plan.Binds = l.binds()
	} else if len(l.protected) > 0 && !a.Seatbelt {
		c.notes = append(c.notes, "nothing new can be made at the top of "+strings.Join(l.opened(), ", ")+
			": what is protected in there cannot be protected otherwise without a mount namespace")
	}
	return c, nil
}

// Notes says what people should know about the confinement: what could not be
// confined, and which roots were left out. A caller shows each text once.
func (c *Confinement) Notes() []string {
	if c == nil {
		return nil
	}
	return slices.Clone(c.notes)
}

// Set confines the command of spec, whose Argv must be complete.
func (c *Confinement) Set(spec *proc.Spec) error {
	if c == nil {
		return nil
	}
	spec.PIDNamespace = c.pids
	return c.plan.set(spec)
}

// Appeared lists protected paths that did not exist when the confinement was
// made and do now: a command made a .git, and what it wrote there (hooks,
// configuration) runs when the user runs git. It cannot be prevented; the user
// should be told.
func (c *Confinement) Appeared() []string {
	if c == nil {
		return nil
	}

	var found []string
	for _, name := range c.missing {
		if exists(name) {
			found = append(found, name)
		}
	}
	return found
}

// plan is a confinement as it is sent to the process that becomes the command.
// All paths are absolute and free of symbolic links, except that the last
// component of a protected one may be such a link.
type plan struct {
	Network   bool     `json:"network,omitempty"`
	Mounts    mounts   `json:"mounts,omitempty"`
	Outside   string   `json:"outside,omitempty"`   // the mount namespace that must not be touched
	Roots     []path   `json:"roots,omitempty"`     // may be written
	Own       []path   `json:"own,omitempty"`       // those of them that are not for everybody
	Protected []path   `json:"protected,omitempty"` // read-only although in a root
	Secret    []path   `json:"secret,omitempty"`    // not even to be read
	Ports     []uint16 `json:"ports,omitempty"`     // of their servers now; for systems without a supervisor that asks
	Homes     []path   `json:"homes,omitempty"`     // whose servers must not be reached
	Binds     []bind   `json:"binds,omitempty"`     // outer ones first
	Shm       bool     `json:"shm,omitempty"`       // with a /dev/shm
	Sockets   bool     `json:"sockets,omitempty"`   // the shim serves local sockets
}

// mounts says where the mount namespace comes from.
type mounts string

const (
	mountsNone  mounts = ""
	mountsOwn   mounts = "own"   // we may make one
	mountsGiven mounts = "given" // we are started in one, by proc.Spec.UserNamespace
)

// bind is a path that becomes a mount of itself. A mount cannot be moved aside.
type bind struct {
	Path  path `json:"path"`
	Write bool `json:"write,omitempty"`
}

// path is a file name that survives JSON even if it is not UTF-8.
type path string

// MarshalJSON writes the bytes of p in base 64.
func (p path) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(p)) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *path) UnmarshalJSON(text []byte) error {
	var b []byte
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	*p = path(b)
	return nil
}

func paths(names []string) []path {
	list := make([]path, len(names))
	for i, n := range names {
		list[i] = path(n)
	}
	return list
}
