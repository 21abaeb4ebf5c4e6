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

// How long connecting, and one request, may take.
const (
	connectTimeout = 5 * time.Second
	requestTimeout = 5 * time.Second
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
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() { // on a busy machine it may be us who were too slow
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
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return l, s.provision(ctx, l)
}

func (s *Store) jetStream(nc *nats.Conn) (jetstream.JetStream, string, error) {
	if s.o.Domain == "" {
		js, err := jetstream.New(nc)
		return js, "$JS.API.", err
	}
	js, err := jetstream.NewWithDomain(nc, s.o.Domain)
	return js, "$JS." + s.o.Domain + ".API.", err
}

func (s *Store) storage() jetstream.StorageType {
	if s.o.Memory {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}

// streamConfig is how a stream for conversations is made.
func (s *Store) streamConfig() jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:        s.o.Name,
		Description: "conversations of fermata",
		Subjects:    []string{s.o.Name + ".c.>", s.o.Name + ".aside.>"},
		Storage:     s.storage(),
		Replicas:    max(s.o.Replicas, 1),
		Discard:     jetstream.DiscardNew, // a full stream refuses; it does not forget
		AllowDirect: true,
		MaxBytes:    -1,
	}
	if s.o.MaxBytes > 0 {
		c.MaxBytes = s.o.MaxBytes
	}
	return c
}

// provision looks for the stream and the buckets, and makes those that are missing.
func (s *Store) provision(ctx context.Context, l *link) error {
	stream, err := s.stream(ctx, l, s.streamConfig())
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	if err := checkStream(info.Config, s.o.Name); err != nil {
		return err
	}
	replicas := info.Config.Replicas
	l.replicas = replicas
	if l.index, err = s.bucket(ctx, l, "index", replicas, 0); err != nil {
		return err
	}
	if l.nodes, err = s.bucket(ctx, l, "nodes", replicas, s.o.Lease); err != nil {
		return err
	}
	if l.ttl, err = bucketTTL(ctx, l.nodes); err != nil {
		return err
	}
	checkpoints := jetstream.StreamConfig{
		Name: s.o.Name + "-checkpoints", Description: "what fermata can derive again", Subjects: []string{s.o.Name + ".k.>"},
		Storage: info.Config.Storage, Replicas: replicas, Discard: jetstream.DiscardNew, AllowDirect: true, MaxBytes: -1,
	}
	if _, err := s.stream(ctx, l, checkpoints); err != nil {
		return err
	}
	l.checkpoints = &conn{nc: l.nc, js: l.js, api: l.api, stream: checkpoints.Name} // only read from
	return nil
}

// stream returns a stream, and makes it if it is missing.
func (s *Store) stream(ctx context.Context, l *link, c jetstream.StreamConfig) (stream jetstream.Stream, err error) {
	err = untilLed(ctx, func() error {
		stream, err = l.js.Stream(ctx, c.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			stream, err = l.js.CreateStream(ctx, c)
		}
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another node was faster
			stream, err = l.js.Stream(ctx, c.Name)
		}
		return err
	})
	if err != nil {
		return nil, &refusal.StreamError{Name: c.Name, Err: err}
	}
	return stream, nil
}

// bucket returns a key-value bucket. Unlike those that the library makes, it is
// read from the leader only: a lease that a replica has not seen yet must not be missing. It
// keeps two values of a key, because the server deletes the one before the last a moment
// before it has the new one: with one value, a lease that is renewed would be missing then.
func (s *Store) bucket(ctx context.Context, l *link, what string, replicas int, ttl time.Duration) (jetstream.KeyValue, error) {
	name := s.o.Name + "-" + what
	var kv jetstream.KeyValue
	err := untilLed(ctx, func() (err error) {
		if kv, err = l.js.KeyValue(ctx, name); !errors.Is(err, jetstream.ErrBucketNotFound) {
			return err
		}
		_, err = l.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, MaxMsgsPerSubject: 2, MaxAge: ttl,
			Storage: s.storage(), Replicas: replicas, Discard: jetstream.DiscardNew,
			AllowRollup: true, DenyDelete: true, MaxBytes: -1, MaxMsgs: -1,
		})
		if err == nil || errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			kv, err = l.js.KeyValue(ctx, name)
		}
		return err
	})
	if err != nil {
		return nil, &refusal.StreamError{Name: name, Err: err}
	}
	return kv, nil
}

func bucketTTL(ctx context.Context, kv jetstream.KeyValue) (time.Duration, error) {
	st, err := kv.Status(ctx)
	if err != nil {
		return 0, err
	}
	if st.TTL() < time.Second || st.TTL() > time.Hour {
		return 0, &refusal.StreamError{Name: kv.Bucket(), Err: fmt.Errorf("its time to live is %v, want between 1s and 1h", st.TTL())}
	}
	return st.TTL(), nil
}

// checkStream says why a stream cannot hold conversations.
func checkStream(c jetstream.StreamConfig, name string) error {
	wrong := ""
	switch {
	case !slices.Contains(c.Subjects, name+".c.>") || !slices.Contains(c.Subjects, name+".aside.>"):
		wrong = fmt.Sprintf("its subjects are %v", c.Subjects)
	case c.Retention != jetstream.LimitsPolicy:
		wrong = fmt.Sprintf("its retention is %v", c.Retention)
	case c.Discard != jetstream.DiscardNew:
		wrong = "it discards old messages when it is full"
	case c.MaxAge != 0 || c.MaxMsgsPerSubject > 0:
		wrong = "it forgets messages"
	case !c.AllowDirect:
		wrong = "it does not allow direct access"
	case c.NoAck:
		wrong = "it does not acknowledge"
	default:
		return nil
	}
	return &refusal.StreamError{Name: name, Err: errors.New("it was not made for conversations: " + wrong)}
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
