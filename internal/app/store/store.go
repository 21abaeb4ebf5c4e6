// Package store opens the store of conversations that the configuration names: files, or
// NATS servers.
package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/app/unreachable"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/fleet/pipe"
	"github.com/fermata-agent/fermata/internal/fleet/worktree"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	"github.com/fermata-agent/fermata/internal/regular"
	"github.com/fermata-agent/fermata/internal/remote"
	"github.com/fermata-agent/fermata/internal/secrets"
	"github.com/fermata-agent/fermata/protocol"
)

// A Place is where conversations are kept, and what a store needs to know of this process.
type Place struct {
	Home  string
	Store config.Store

	Member  nats.Member   // how this process takes part in a fleet
	Address func() string // where others can join; nil if none can
	Join    bool          // others can be joined

	// Accept is given what accepts clients from other machines, before anything is opened. nil if no process can join.
	Accept func(*pipe.Listener)

	Warn func(string) // is given what could not be kept of work trees; nil if nothing is run

	Renewed func(until time.Time) // as in nats.Options
	Lost    func()
	Full    func(error)
}

// An Opened store is one that the configuration names.
type Opened struct {
	journal.Store
	nats *nats.Store // nil if it is in files

	Trees *worktree.Keeper // work trees that move; nil if it is in files, or nothing is run
	trees worktree.Archive // what is kept of them
}

// Open returns the store. Nothing is opened yet.
func Open(ctx context.Context, p Place) Opened {
	if p.Store.URL == "" {
		return Opened{Store: file.New(p.Home, file.Options{Address: p.Address, Join: p.Join}), trees: worktree.Files{Home: p.Home}}
	}
	s := nats.New(ctx, natsOptions(p))
	if p.Warn == nil {
		return Opened{Store: s, nats: s, trees: worktree.Trees{Store: s}}
	}
	host, _ := os.Hostname() // it is for people
	node := cmp.Or(p.Member.Name, host, "another machine")
	trees := &worktree.Keeper{Home: p.Home, Node: node, Base: context.WithoutCancel(ctx), Warn: p.Warn, Trees: worktree.Trees{Store: s}}
	return Opened{s, s, trees, trees.Trees}
}

// Keep has an engine make and keep the work trees of its conversations, and begin no turn while the store is full.
func (o Opened) Keep(e *engine.Config) {
	if o.nats != nil {
		e.Ready = o.ready
	}
	if o.Trees != nil {
		e.TurnEnded, e.TurnWaits = both(e.TurnEnded, o.Trees.Ended), both(e.TurnWaits, o.Trees.Waits)
	}
}

// both calls two functions, of which the first may be nil.
func both(first, second func(protocol.TurnSummary)) func(protocol.TurnSummary) {
	if first == nil {
		return second
	}
	return func(s protocol.TurnSummary) {
		first(s)
		second(s)
	}
}

func (o Opened) ready(ctx context.Context, s engine.Snapshot, op protocol.Op) (engine.Readiness, error) {
	if op != nil {
		if err := o.nats.Room(ctx); err != nil {
			return engine.Readiness{}, err
		}
	}
	if o.Trees == nil {
		return engine.Readiness{}, nil
	}
	return o.Trees.Ready(ctx, s, op)
}

// Set changes what was fixed when the stream of the configured store was made, as fermata store set does.
func Set(ctx context.Context, name string, value int64) error {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return err
	}
	settings, err := Settings(home)
	if err != nil {
		return err
	}
	if settings.URL == "" {
		return ErrFiles
	}
	s := nats.New(ctx, natsOptions(Place{Home: home, Store: settings}))
	defer s.Close()
	return s.Set(ctx, name, value)
}

// ErrFiles says that conversations are in files, which have no settings.
var ErrFiles = errors.New("conversations are in files: [store] url is not set")

// Close ends what the store has open outside of this process.
func (o Opened) Close() {
	if o.Trees != nil {
		o.Trees.Wait()
	}
	if o.nats != nil {
		o.nats.Close()
	}
}

// Shared returns the store that other machines use too, if it is one.
func (o Opened) Shared() (*nats.Store, bool) { return o.nats, o.nats != nil }

// Nodes returns the processes on all machines that use the same store and count as alive; none if it is in files.
func (o Opened) Nodes(ctx context.Context) ([]nats.Node, error) {
	if o.nats == nil {
		return nil, nil
	}
	return o.nats.Nodes(ctx)
}

// Reach connects to a process that uses the same store, on whichever machine.
func (o Opened) Reach(ctx context.Context, node string) (io.ReadWriteCloser, error) {
	if o.nats == nil {
		return nil, errors.New("it is on another machine, and [store] url is not set here")
	}
	link, err := o.nats.Link(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := pipe.Dial(ctx, pipe.OverNATS(link.Conn), node, pipeOptions(link.Lease))
	if v := (*pipe.VersionError)(nil); errors.As(err, &v) { // what they speak, we do not
		return nil, &remote.VersionError{Oldest: v.Theirs, Newest: v.Theirs, Theirs: v.Newest}
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// pipeOptions give up a silent process before its lease ends: then it can be taken over from.
func pipeOptions(lease time.Duration) pipe.Options {
	return pipe.Options{Silence: max(lease*2/3, time.Second)}
}

func natsOptions(p Place) nats.Options {
	c := p.Store
	return nats.Options{
		URL: c.URL, Name: c.Stream, Domain: c.Domain,
		Auth: nats.Auth{
			User: c.User, Password: orVariable(c.Password, config.StorePassword), Token: orVariable(c.Token, config.StoreToken),
			NKey: c.NKey.String(), Creds: c.Creds.String(), CA: c.CA, Cert: c.Cert, Key: c.Key.String(),
		},
		Connect:  keepFromCommands(secrets.Home(p.Home), c),
		Replicas: int(c.Replicas), Memory: c.Memory, MaxBytes: c.MaxBytes, Lease: c.Lease,
		Member: p.Member, Address: p.Address, Join: p.Join, Accept: accept(p), Renewed: p.Renewed, Lost: p.Lost, Full: p.Full,
	}
}

// keepFromCommands registers what confined commands must not reach: the files with keys to the NATS servers, before
// they are read, and their addresses, before they are connected to. Whoever may connect is a member of the fleet, and
// can approve what a command asks for.
func keepFromCommands(home secrets.Home, c config.Store) []natsgo.Option {
	for _, file := range []secrets.File{c.NKey, c.Creds, c.Key} {
		if !file.IsSet() {
			continue
		}
		if err := home.Register(file.String()); err != nil {
			return []natsgo.Option{func(*natsgo.Options) error { return err }}
		}
	}
	if c.CommandsMayConnect {
		return nil
	}
	d := &unreachable.Dialer{Home: home, URLs: strings.Split(c.URL, ","), DefaultPort: natsgo.DefaultPort}
	others := func(nc *natsgo.Conn) { _ = d.Register(nc.Servers()...) } // which it names; those that are used are registered by Dial
	return []natsgo.Option{natsgo.SetCustomDialer(d), natsgo.ConnectHandler(others), natsgo.DiscoveredServersHandler(others)}
}

// accept makes what begins to accept clients from other machines.
func accept(p Place) func(*natsgo.Conn, string, time.Duration) error {
	if p.Accept == nil {
		return nil
	}
	return func(nc *natsgo.Conn, subject string, lease time.Duration) error {
		l, err := pipe.Listen(pipe.OverNATS(nc), subject, pipeOptions(lease))
		if err == nil {
			p.Accept(l)
		}
		return err
	}
}

func orVariable(s config.Secret, name string) string {
	if s.IsSet() {
		return s.Reveal()
	}
	return os.Getenv(name)
}

// Settings reads what the configuration says of the store. A file that says
// nothing of it is not parsed: most commands need nothing else of it.
func Settings(home string) (config.Store, error) {
	text, err := regular.ReadFile(filepath.Join(home, config.FileName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return config.Store{}, nil
	case err != nil: // it may name another store: what is in files would be shown as if it were everything
		return config.Store{}, fmt.Errorf("read configuration: %w", err)
	case !bytes.Contains(text, []byte("store")):
		return config.Store{}, nil // whoever needs the rest says what is wrong with it
	}
	cfg, _, err := config.Load(config.Options{Home: home, Cwd: home, Env: os.Getenv})
	if err != nil {
		return config.Store{}, err
	}
	return cfg.Store, nil
}

// Describe says where conversations are kept, and what is wrong with that.
func Describe(ctx context.Context, cfg *config.Config) []string {
	if cfg.Store.URL == "" {
		return []string{"files in " + cfg.Home}
	}
	s := nats.New(ctx, natsOptions(Place{Home: cfg.Home, Store: cfg.Store}))
	defer s.Close()
	return s.Describe(ctx)
}

// Copy copies conversations from one store to another, all if none is named, and
// compares them afterwards. Each store is "files", a directory, or the address of NATS servers,
// which takes the other settings from the configuration.
func Copy(ctx context.Context, from, to string, ids []string, report func(Copied)) error {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return err
	}
	settings, err := Settings(home)
	if err != nil {
		return err
	}
	var stores [2]Opened
	for i, name := range []string{from, to} {
		s, err := namedStore(ctx, home, name, settings)
		if err != nil {
			return err
		}
		defer s.Close()
		stores[i] = s
	}
	if from == to {
		return ErrSame
	}
	infos, err := stores[0].List(ctx)
	var incomplete *journal.IncompleteError
	if err != nil && !errors.As(err, &incomplete) {
		return err
	}
	if _, err := stores[1].List(ctx); err != nil { // there may be nothing to copy
		return err
	}
	if infos, err = chosen(infos, ids); err != nil {
		return err
	}
	failed := 0
	for _, in := range infos {
		n, err := journal.Copy(ctx, stores[0], stores[1], in)
		hasTree := false
		if err == nil {
			hasTree, err = worktree.Copy(ctx, stores[0].trees, stores[1].trees, in.ID)
		}
		report(Copied{ID: in.ID, Records: n, HasTree: hasTree, Err: err})
		if err != nil {
			failed++
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if incomplete != nil && len(ids) == 0 {
		return incomplete
	}
	if failed > 0 {
		return fmt.Errorf("not copied: %d", failed)
	}
	return nil
}

// Copied is what became of one conversation.
type Copied struct {
	ID      string
	Records int
	HasTree bool  // it has a work tree, which was copied as well
	Err     error // why it was not copied
}

// chosen picks the conversations whose ID begins with one of some; all if there are none.
func chosen(infos []journal.Info, ids []string) ([]journal.Info, error) {
	if len(ids) == 0 {
		return infos, nil
	}
	var list []journal.Info
	found := map[string]bool{}
	for _, in := range infos {
		take := false
		for _, prefix := range ids {
			if strings.HasPrefix(in.ID, prefix) {
				found[prefix], take = true, true
			}
		}
		if take {
			list = append(list, in)
		}
	}
	for _, id := range ids {
		if !found[id] {
			return nil, fmt.Errorf("there is no conversation %s", id)
		}
	}
	return list, nil
}

// Errors of who names stores.
var (
	ErrName = errors.New(`name a store: "files", a directory, or nats://HOST:PORT`)
	ErrSame = errors.New("--from and --to name the same store")
)

func namedStore(ctx context.Context, home, name string, settings config.Store) (Opened, error) {
	switch {
	case name == "":
		return Opened{}, ErrName
	case name == "files":
		settings.URL = ""
	case strings.Contains(name, "://"):
		settings.URL = name
	default:
		dir, err := filepath.Abs(name)
		if err != nil {
			return Opened{}, err
		}
		home, settings.URL = dir, ""
	}
	return Open(ctx, Place{Home: home, Store: settings}), nil
}
