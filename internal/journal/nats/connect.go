package nats

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal/nats/provision"
	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
)

// Auth is how this process proves to the servers who it is. Empty fields are not used.
type Auth struct {
	User, Password string
	Token          string
	NKey           string // file with the seed of an nkey
	Creds          string // file with a JWT and the seed of its nkey
	CA             string // file with certificates to trust
	Cert, Key      string // files with this client's certificate
}

func (a Auth) options() ([]nats.Option, error) {
	switch {
	case a.Password != "" && a.User == "":
		return nil, errors.New("[store] password is set without user: set both, or token")
	case (a.Cert == "") != (a.Key == ""):
		return nil, errors.New("[store] cert and key belong together: set both")
	}
	var all []nats.Option
	if a.User != "" {
		all = append(all, nats.UserInfo(a.User, a.Password))
	}
	if a.Token != "" {
		all = append(all, nats.Token(a.Token))
	}
	if a.Creds != "" {
		all = append(all, nats.UserCredentials(a.Creds))
	}
	if a.NKey != "" {
		o, err := nats.NkeyOptionFromSeed(a.NKey)
		if err != nil {
			return nil, fmt.Errorf("read the nkey seed %s: %w", a.NKey, err)
		}
		all = append(all, o)
	}
	if a.CA != "" {
		all = append(all, nats.RootCAs(a.CA))
	}
	if a.Cert != "" {
		all = append(all, nats.ClientCert(a.Cert, a.Key))
	}
	return all, nil
}

// How long a connection to a server, finding everything that the store needs, and one request may take. Servers elect a leader within
// 9 s, and are slow when hundreds of clients come at once.
const (
	connectTimeout = 5 * time.Second
	findTimeout    = 30 * time.Second
	requestTimeout = 15 * time.Second
)

// connect returns the link, and makes it if there is none.
func (s *Store) connect(ctx context.Context) (*link, error) {
	select {
	case s.connecting <- struct{}{}:
		defer func() { <-s.connecting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.base.Err() != nil {
		return nil, context.Cause(s.base)
	}
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l != nil {
		return l, nil
	}
	l, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.link = l
	s.mu.Unlock()
	return l, nil
}

// dial connects and looks for everything that the store needs, and makes what is
// missing.
func (s *Store) dial(ctx context.Context) (_ *link, err error) {
	auth, err := s.o.Auth.options()
	if err != nil {
		return nil, err
	}
	options := slices.Concat([]nats.Option{
		nats.Name("fermata " + s.node), nats.Timeout(connectTimeout / 2),
		nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond), nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.ReconnectBufSize(-1),                                         // what cannot be sent now is sent again by us, if it is still wanted
		nats.PingInterval(2 * time.Second),                                // a server that disappears without closing the connection is noticed
		nats.MaxPingsOutstanding(2),                                       //
		nats.IgnoreAuthErrorAbort(),                                       // a password may be changed back
		nats.ReconnectHandler(s.reconnected),                              // hints were missed
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // not on stderr
	}, auth, s.o.Connect)
	nc, err := nats.Connect(s.o.URL, options...)
	for tries := 1; tries < connectTries && isTimeout(err) && ctx.Err() == nil; tries++ { // on a busy machine it may be us who were too slow
		nc, err = nats.Connect(s.o.URL, options...)
	}
	if err != nil {
		return nil, &refusal.ConnectError{URL: s.o.URL, Cert: s.o.Auth.Cert != "", Err: err}
	}
	defer func() {
		if err != nil {
			nc.Close()
		}
	}()
	js, api, err := s.jetStream(nc)
	if err != nil {
		return nil, err
	}
	l := &link{ttl: s.o.Lease}
	if l.conn, err = newConn(nc, js, api, s.o.Name); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	return l, s.provision(ctx, l)
}

// connectTries is how often servers that do not answer in time are connected to.
const connectTries = 4

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func (s *Store) jetStream(nc *nats.Conn) (jetstream.JetStream, string, error) {
	if s.o.Domain == "" {
		js, err := jetstream.New(nc)
		return js, "$JS.API.", err
	}
	js, err := jetstream.NewWithDomain(nc, s.o.Domain)
	return js, "$JS." + s.o.Domain + ".API.", err
}

// layout is how streams are made for this store.
func (s *Store) layout() provision.Layout {
	return provision.Layout{Name: s.o.Name, Replicas: s.o.Replicas, Memory: s.o.Memory, MaxBytes: s.o.MaxBytes}
}

// bucket returns a key-value bucket of this store.
func (s *Store) bucket(ctx context.Context, l *link, what string, replicas int, age time.Duration) (jetstream.KeyValue, error) {
	return provision.Bucket(ctx, l.js, provision.BucketConfig{Name: s.o.Name + "-" + what, Replicas: replicas, Storage: s.layout().Storage(), Age: age})
}

// provision looks for the stream and the buckets, and makes those that are missing.
func (s *Store) provision(ctx context.Context, l *link) error {
	stream, err := provision.Stream(ctx, l.js, s.layout().Conversations())
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	if err := provision.Check(info.Config, s.o.Name); err != nil {
		return err
	}
	l.room = provision.NewRoom()
	l.room.Note(provision.LimitOf(info.Config), info.State.Bytes)
	replicas := info.Config.Replicas
	l.replicas = replicas
	if l.index, err = s.bucket(ctx, l, "index", replicas, 0); err != nil {
		return err
	}
	if l.nodes, err = s.bucket(ctx, l, "nodes", replicas, s.o.Lease); err != nil {
		return err
	}
	if l.ttl, err = provision.Age(ctx, l.nodes); err != nil {
		return err
	}
	checkpoints := jetstream.StreamConfig{
		Name: s.o.Name + "-checkpoints", Description: "what fermata can derive again", Subjects: []string{s.o.Name + ".k.>"},
		Storage: info.Config.Storage, Replicas: replicas, Discard: jetstream.DiscardNew, AllowDirect: true, MaxBytes: -1,
	}
	if _, err := provision.Stream(ctx, l.js, checkpoints); err != nil {
		return err
	}
	l.checkpoints = &conn{nc: l.nc, js: l.js, api: l.api, stream: checkpoints.Name} // only read from
	return nil
}

// purge deletes the messages of a subject before a sequence, or all if that is 0.
func (l *conn) purge(ctx context.Context, subject string, before uint64) error {
	stream, err := l.js.Stream(ctx, l.stream)
	if err != nil {
		return err
	}
	options := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(subject)}
	if before > 0 {
		options = append(options, jetstream.WithPurgeSequence(before))
	}
	return stream.Purge(ctx, options...)
}
