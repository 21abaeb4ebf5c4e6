package servecmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app"
	"github.com/fermata-agent/fermata/internal/app/work"
	"github.com/fermata-agent/fermata/internal/fleet"
	"github.com/fermata-agent/fermata/internal/safetext"
)

// defaultTurns is how many turns a node runs at once for others.
const defaultTurns = 4

// nodeServiceFlags are those of a node of a fleet.
type nodeServiceFlags struct {
	run    *cli.RunFlags
	watch  *monitorFlags
	name   string
	labels []string
	turns  int
	drain  time.Duration
	users  string // directory of users who share the node
	each   int    // turns at once of each of them
	userOf string // this process runs the turns of one of the users in this directory

	drained chan struct{} // closed to have the node end when its turns have ended
}

func (f *nodeServiceFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.name, "node", "", "take part in the fleet that shares [store] url, as `NAME`: run turns that fermata exec --fleet submits")
	fs.StringSliceVar(&f.labels, "labels", nil, "with --node: also run turns that ask for one of these labels, as `A,B`")
	fs.DurationVar(&f.drain, "drain", 0, "with --node: at SIGTERM take nothing more and let turns end, for at most this `TIME`; a second signal ends them at once")
	fs.StringVar(&f.users, "users", "", "with --node: serve the users whose homes are in `DIR`, each with an account of its own on the NATS servers")
	fs.IntVar(&f.each, "turns-each", defaultTurns/2, "with --users: run at most `N` turns at once for each user")
	fs.StringVar(&f.userOf, "user-of", "", "it was started by a node that users in this `DIR` share")
	_ = fs.MarkHidden("user-of")
	fs.IntVar(&f.turns, "turns", defaultTurns, "with --node: run at most `N` turns at once for others")
}

func (f *nodeServiceFlags) service(s cli.Streams, fs *pflag.FlagSet, _ []string) (app.Service, error) {
	if !fs.Changed("node") {
		for _, name := range []string{"labels", "turns", "drain", "users", "turns-each", "user-of"} {
			if fs.Changed(name) {
				return nil, cli.Usagef("serve: --%s needs --node", name)
			}
		}
		return nil, nil
	}
	if err := fleet.CheckLabel(f.name); err != nil {
		return nil, cli.Usagef("serve: --node: %q is not a name: use up to 32 letters, digits, - and _", f.name)
	}
	for _, l := range f.labels {
		if err := fleet.CheckLabel(l); err != nil {
			return nil, cli.Usagef("serve: --labels: %w", err)
		}
	}
	if f.turns < 1 {
		return nil, cli.Usagef("serve: --turns must be at least 1")
	}
	if f.drain < 0 {
		return nil, cli.Usagef("serve: --drain must not be negative")
	}
	if f.users != "" || fs.Changed("turns-each") {
		return f.sharedService(s, fs)
	}
	var share *work.Share
	if f.userOf != "" {
		var err error
		if share, err = openShare(f.userOf); err != nil {
			return nil, err
		}
	}
	turns := &fleet.Turns{}
	f.run.Member = app.Member{Name: f.name, Labels: f.labels, Turns: f.turns, Version: cli.Version(), Now: turns.Now}
	takes := "any turn"
	if len(f.labels) > 0 {
		takes += ", and those for " + strings.Join(f.labels, ", ")
	}
	say := func(line string) { fmt.Fprintf(s.Err, "fermata: %s\n", safetext.Strip(line)) }
	f.drained = make(chan struct{})
	return work.Worker{
		Turns: turns, Report: f.report(say), Say: say,
		Ready: func() { say("node " + f.name + " takes " + takes) }, Drain: f.drained, Share: share,
	}, nil
}

// report returns what a worker reports to: people, and what watches the server.
func (f *nodeServiceFlags) report(say func(string)) func(fleet.Report) {
	watch := f.watch.monitor
	if watch != nil {
		watch.Node(f.run.Member)
	}
	return func(r fleet.Report) {
		say(r.String())
		if watch != nil {
			watch.Work(r)
		}
	}
}

// gentle is how the node ends at SIGTERM.
func (f *nodeServiceFlags) gentle() cli.Gentle {
	return cli.Gentle{Time: f.drain, Begin: func() { close(f.drained) }}
}
