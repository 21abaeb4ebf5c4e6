package config

import "time"

// A Store says where conversations are kept.
type Store struct {
	URL      string // of NATS servers, separated by commas; empty: in files
	Stream   string
	User     string
	Password Secret
	Token    Secret
	NKey     string // file with the seed
	Creds    string // file
	CA       string // file
	Cert     string // file
	Key      string // file
	Domain   string
	Replicas int64 // when the stream is made
	MaxBytes int64 // when the stream is made; 0 is no limit
	Memory   bool  // when the stream is made
	Lease    time.Duration
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
		text("store.nkey", in(func(s *Store) *string { return &s.NKey })).as(pathKind),
		text("store.creds", in(func(s *Store) *string { return &s.Creds })).as(pathKind),
		text("store.ca", in(func(s *Store) *string { return &s.CA })).as(pathKind),
		text("store.cert", in(func(s *Store) *string { return &s.Cert })).as(pathKind),
		text("store.key", in(func(s *Store) *string { return &s.Key })).as(pathKind),
		text("store.domain", in(func(s *Store) *string { return &s.Domain })),
		whole("store.replicas", of(func(c *Config) *int64 { return &c.Store.Replicas })).within(1, 9).or(int64(1)),
		whole("store.max_bytes", of(func(c *Config) *int64 { return &c.Store.MaxBytes })).or(int64(0)),
		yesNo("store.memory", of(func(c *Config) *bool { return &c.Store.Memory })).or(false),
		millis("store.lease_ms", of(func(c *Config) *time.Duration { return &c.Store.Lease })).within(1000, 60*60*1000).or(int64(1500)),
	}
	for i := range keys {
		keys[i].global = true
	}
	return keys
}
