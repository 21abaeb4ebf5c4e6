package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	webpush "github.com/SherClockHolmes/webpush-go"

	"github.com/fermata-agent/fermata/internal/surface/web/access"
	p "github.com/fermata-agent/fermata/protocol"
)

// Push sends to browsers that asked for it, through the push services of their makers. What it sends is encrypted for the
// browser; the services see when, not what.
type Push struct {
	keys   access.VAPID
	client *http.Client
	others []string // hosts that the operator allows besides the known services
}

// NewPush returns the means to push, with the keys of the store, which it makes the first time. others are push services that
// the operator allows besides those of the known browsers.
func NewPush(store *access.Store, others []string) (*Push, error) {
	st, err := store.Read()
	if err != nil {
		return nil, err
	}
	if st.VAPID == nil {
		err = store.Change(func(now *access.State) error {
			if now.VAPID == nil {
				private, public, err := webpush.GenerateVAPIDKeys()
				if err != nil {
					return err
				}
				now.VAPID = &access.VAPID{Public: public, Private: private}
			}
			st.VAPID = now.VAPID
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return &Push{*st.VAPID, client(), others}, nil
}

// Key is what a browser needs to subscribe.
func (s *Push) Key() string { return s.keys.Public }

// services are the push services of browsers: their hosts, and with a dot in front all hosts below.
var services = []string{"fcm.googleapis.com", ".push.services.mozilla.com", ".notify.windows.com", ".push.apple.com"}

// ErrEndpoint says that a subscription names no push service.
var ErrEndpoint = errors.New("the endpoint must be an https address of a push service; notify_push_services in config.toml allows others")

// allowed reports whether notifications may be sent to an address: to a push service that is known, or that the operator allows.
func (s *Push) allowed(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" || u.User != nil {
		return false
	}
	return slices.ContainsFunc(slices.Concat(services, s.others), func(known string) bool {
		return u.Host == known || strings.HasPrefix(known, ".") && strings.HasSuffix(u.Host, known)
	})
}

// Subscribe notes that the browser of a session wants to be notified.
func (s *Push) Subscribe(store *access.Store, c access.PushClient) error {
	if !s.allowed(c.Endpoint) {
		return ErrEndpoint
	}
	if c.Auth == "" || c.P256dh == "" {
		return errors.New("the keys of the subscription are missing")
	}
	return store.Change(func(st *access.State) error {
		st.Push = slices.DeleteFunc(st.Push, func(x access.PushClient) bool { return x.Endpoint == c.Endpoint })
		st.Push = append(st.Push, c)
		return nil
	})
}

// A pushed is what the page's worker shows.
type pushed struct {
	Title        string           `json:"title"`
	Body         string           `json:"body"`
	Tag          string           `json:"tag"`
	Conversation p.ConversationID `json:"conversation"`
}

// send sends a message to every browser. One that has left is forgotten.
func (s *Push) send(ctx context.Context, store *access.Store, m Message) error {
	st, err := store.Read()
	if err != nil {
		return err
	}
	data, err := json.Marshal(pushed{p.CutMiddle(m.Title, 200), p.CutMiddle(m.Text, 1000), string(m.Conversation), m.Conversation})
	if err != nil {
		return err
	}
	var problems []error
	for _, c := range st.Push {
		if !s.allowed(c.Endpoint) { // it was subscribed when it was
			continue
		}
		problems = append(problems, s.one(ctx, store, c, data))
	}
	return errors.Join(problems...)
}

func (s *Push) one(ctx context.Context, store *access.Store, c access.PushClient, data []byte) error {
	sub := &webpush.Subscription{Endpoint: c.Endpoint, Keys: webpush.Keys{Auth: c.Auth, P256dh: c.P256dh}}
	res, err := webpush.SendNotificationWithContext(ctx, data, sub, &webpush.Options{
		HTTPClient: s.client, Subscriber: "https://github.com/fermata-agent/fermata", TTL: 24 * 60 * 60, Urgency: webpush.UrgencyHigh,
		VAPIDPublicKey: s.keys.Public, VAPIDPrivateKey: s.keys.Private,
	})
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusGone || res.StatusCode == http.StatusNotFound:
		return store.Change(func(st *access.State) error {
			st.Push = slices.DeleteFunc(st.Push, func(x access.PushClient) bool { return x.Endpoint == c.Endpoint })
			return nil
		})
	case res.StatusCode/100 != 2:
		return fmt.Errorf("push: the service answered %s", res.Status)
	}
	return nil
}
