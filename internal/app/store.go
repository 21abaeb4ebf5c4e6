package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/internal/journal/nats"
)

// A place is where conversations are kept, and what a store needs to know of this process.
type place struct {
	home  string
	store config.Store

	address func() string // where others can join; nil if nobody can
	join    bool          // others can be joined

	renewed func(until time.Time) // as in nats.Options
	lost    func()
}

// openStore returns the store, and what closes it. Nothing is opened yet.
func openStore(ctx context.Context, p place) (journal.Store, func()) {
	if p.store.URL == "" {
		return file.New(p.home, file.Options{Address: p.address, Join: p.join}), func() {}
	}
	s := nats.New(ctx, natsOptions(p))
	return s, func() { s.Close() }
}

func natsOptions(p place) nats.Options {
	c := p.store
	return nats.Options{
		URL: c.URL, Name: c.Stream, Domain: c.Domain,
		Auth: nats.Auth{
			User: c.User, Password: orVariable(c.Password, "FERMATA_STORE_PASSWORD"), Token: orVariable(c.Token, "FERMATA_STORE_TOKEN"),
			NKey: c.NKey, Creds: c.Creds, CA: c.CA, Cert: c.Cert, Key: c.Key,
		},
		Replicas: int(c.Replicas), Memory: c.Memory, MaxBytes: c.MaxBytes, Lease: c.Lease,
		Address: p.address, Join: p.join, Renewed: p.renewed, Lost: p.lost,
	}
}

func orVariable(s config.Secret, name string) string {
	if s.IsSet() {
		return s.Reveal()
	}
	return os.Getenv(name)
}

// storeSettings reads what the configuration says of the store. A file that says
// nothing of it is not parsed: most commands need nothing else of it.
func storeSettings(home string) (config.Store, error) {
	text, err := os.ReadFile(filepath.Join(home, config.FileName))
	if err != nil || !bytes.Contains(text, []byte("store")) {
		return config.Store{}, nil // whoever needs the rest says what is wrong with it
	}
	cwd, err := workdir("")
	if err != nil {
		return config.Store{}, err
	}
	cfg, _, err := config.Load(config.Options{Cwd: cwd, Env: os.Getenv})
	if err != nil {
		return config.Store{}, configError(err)
	}
	return cfg.Store, nil
}

// DescribeStore says where conversations are kept, and what is wrong with that.
func DescribeStore(ctx context.Context, cfg *config.Config) []string {
	if cfg.Store.URL == "" {
		return []string{"files in " + cfg.Home}
	}
	s := nats.New(ctx, natsOptions(place{home: cfg.Home, store: cfg.Store}))
	defer s.Close()
	return s.Describe(ctx)
}

// CopyStore copies conversations from one store to another, all if none is named, and
// compares them afterwards. Each store is "files", a directory, or the address of NATS servers,
// which takes the other settings from the configuration.
func CopyStore(ctx context.Context, from, to string, ids []string, report func(id string, records int, err error)) error {
	home, err := config.Home(os.Getenv)
	if err != nil {
		return configError(err)
	}
	settings, err := storeSettings(home)
	if err != nil {
		return err
	}
	var stores [2]journal.Store
	for i, name := range []string{from, to} {
		s, closeStore, err := namedStore(ctx, home, name, settings)
		if err != nil {
			return err
		}
		defer closeStore()
		stores[i] = s
	}
	if from == to {
		return usage("--from and --to name the same store")
	}
	infos, err := stores[0].List(ctx)
	if err != nil {
		return err
	}
	failed := 0
	for _, in := range infos {
		if len(ids) > 0 && !named(ids, in.ID) {
			continue
		}
		n, err := journal.Copy(ctx, stores[0], stores[1], in)
		report(in.ID, n, err)
		if err != nil {
			failed++
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%s could not be copied", plural(failed, "conversation"))
	}
	return nil
}

func named(ids []string, id string) bool {
	for _, prefix := range ids {
		if strings.HasPrefix(id, prefix) {
			return true
		}
	}
	return false
}

var errStoreName = errors.New(`name a store: "files", a directory, or nats://HOST:PORT`)

func namedStore(ctx context.Context, home, name string, settings config.Store) (journal.Store, func(), error) {
	switch {
	case name == "":
		return nil, nil, &Error{Err: errStoreName, Usage: true}
	case name == "files":
		settings.URL = ""
	case strings.Contains(name, "://"):
		settings.URL = name
	default:
		dir, err := filepath.Abs(name)
		if err != nil {
			return nil, nil, err
		}
		home, settings.URL = dir, ""
	}
	s, closeStore := openStore(ctx, place{home: home, store: settings})
	return s, closeStore, nil
}
