package servecmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/work"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/safetext"
	p "github.com/fermata-agent/fermata/protocol"
)

// Flags of a shared node: those that the processes of its users get as they are, and those that are for the node itself. All others belong
// into the configuration of a user.
var (
	flagsForUsers = []string{"min-approval", "allow-provider", "allow-key-variable", "allow-dir"}
	flagsForNode  = []string{"node", "users", "turns", "turns-each", "labels", "drain", "max-sandbox", "idle", "metrics", "metrics-token-file", "log", "log-level"}
)

// sharedService is that of a node which several users share.
func (f *nodeServiceFlags) sharedService(s cli.Streams, fs *pflag.FlagSet) (app.Service, error) {
	limit := f.run.Limits.MaxSandbox
	switch {
	case f.users == "":
		return nil, cli.Usagef("serve: --turns-each needs --users")
	case f.each < 1:
		return nil, cli.Usagef("serve: --turns-each must be at least 1")
	case limit == string(p.SandboxFullAccess):
		return nil, cli.Usagef("serve: --max-sandbox: users of a shared node cannot have danger-full-access: they run as the same system user, and could read what belongs to others")
	case limit == "":
		limit = string(p.SandboxWorkspaceWrite)
	}
	dir, err := filepath.Abs(f.users)
	if err != nil {
		return nil, err
	}
	if _, err := work.ListUsers(dir); err != nil {
		return nil, cli.Usagef("serve: --users: %w", err)
	}
	args := []string{"--node", f.name, "--turns", strconv.Itoa(f.each), "--max-sandbox", limit, "--drain", f.drain.String()}
	if len(f.labels) > 0 {
		args = append(args, "--labels", strings.Join(f.labels, ","))
	}
	var wrong error
	fs.Visit(func(flag *pflag.Flag) {
		switch {
		case slices.Contains(flagsForUsers, flag.Name):
			for _, value := range valuesOf(flag) {
				args = append(args, "--"+flag.Name, value)
			}
		case !slices.Contains(flagsForNode, flag.Name) && wrong == nil:
			wrong = cli.Usagef("serve: --%s: users of a shared node have settings of their own, in %s", flag.Name, filepath.Join(dir, "NAME", config.FileName))
		}
	})
	if wrong != nil {
		return nil, wrong
	}
	f.drained = make(chan struct{})
	say := func(line string) { fmt.Fprintf(s.Err, "fermata: %s\n", safetext.Strip(line)) }
	return work.Users{Dir: dir, Args: args, Turns: f.turns, Say: say, Drain: f.drained}, nil
}

// valuesOf are the values of a flag that may be repeated.
func valuesOf(f *pflag.Flag) []string {
	if many, ok := f.Value.(pflag.SliceValue); ok {
		return many.GetSlice()
	}
	return []string{f.Value.String()}
}

// openShare is the part of this process in a node that it was started by.
func openShare(dir string) (*work.Share, error) {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return nil, err
	}
	return work.OpenShare(dir, home)
}
