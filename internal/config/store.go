package config

import (
	"time"

	"github.com/fermata-agent/fermata/internal/secrets"
)

// A Store says where conversations are kept.
type Store struct {
	URL      string // of NATS servers, separated by commas; empty: in files
	Stream   string
	User     string
	Password Secret
	Token    Secret
	NKey     secrets.File // with the seed
	Creds    secrets.File
	CA       string // file
	Cert     string // file
	Key      secrets.File
	Domain   string
	Replicas int64 // when the stream is made
	MaxBytes int64 // when the stream is made; 0 is no limit
	Memory   bool  // when the stream is made
	Lease    time.Duration

	CommandsMayConnect bool // confined ones, with network access
}

// storeKeys say where conversations are kept.
func storeKeys() []key {
	in := func(f func(*Store) *string) place[string] { return of(func(c *Config) *string { return f(&c.Store) }) }
	hidden := func(path string, at place[Secret]) key {
		k := newKey(path, secretKind)
		k.put = func(c *Config, names []string, v any) { *at(c, names) = v.(Secret) }
		return k
	}
	keys := []key{
		text("store.url", in(func(s *Store) *string { return &s.URL })),
		text("store.stream", in(func(s *Store) *string { return &s.Stream })).or("fermata"),
		text("store.user", in(func(s *Store) *string { return &s.User })),
		hidden("store.password", of(func(c *Config) *Secret { return &c.Store.Password })),
		hidden("store.token", of(func(c *Config) *Secret { return &c.Store.Token })),
		secretFile("store.nkey", of(func(c *Config) *secrets.File { return &c.Store.NKey })),
		secretFile("store.creds", of(func(c *Config) *secrets.File { return &c.Store.Creds })),
		text("store.ca", in(func(s *Store) *string { return &s.CA })).as(pathKind),
		text("store.cert", in(func(s *Store) *string { return &s.Cert })).as(pathKind),
		secretFile("store.key", of(func(c *Config) *secrets.File { return &c.Store.Key })),
		text("store.domain", in(func(s *Store) *string { return &s.Domain })),
		whole("store.replicas", of(func(c *Config) *int64 { return &c.Store.Replicas })).within(1, 9).or(int64(1)),
		whole("store.max_bytes", of(func(c *Config) *int64 { return &c.Store.MaxBytes })).or(int64(0)),
		yesNo("store.memory", of(func(c *Config) *bool { return &c.Store.Memory })).or(false),
		yesNo("store.commands_may_connect", of(func(c *Config) *bool { return &c.Store.CommandsMayConnect })).or(false),
		millis("store.lease_ms", of(func(c *Config) *time.Duration { return &c.Store.Lease })).within(1000, 60*60*1000).or(int64(30_000)),
	}
	for i := range keys {
		keys[i].global = true
	}
	return keys
}
