package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	webpush "github.com/SherClockHolmes/webpush-go"

	"github.com/fermata-agent/fermata/internal/surface/web/access"
	p "github.com/fermata-agent/fermata/protocol"
)

// Push sends to browsers that asked for it, through the push services of their makers. What it sends is encrypted for the
// browser; the services see when, not what.
type Push struct {
	keys   access.VAPID
	client *http.Client
}

// NewPush returns the means to push, with the keys of the store, which it makes the first time.
func NewPush(store *access.Store) (*Push, error) {
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
	return &Push{*st.VAPID, client()}, nil
}

// Key is what a browser needs to subscribe.
func (s *Push) Key() string { return s.keys.Public }

// ErrEndpoint says that a subscription names no push service.
var ErrEndpoint = errors.New("the endpoint must be an https address")

// Subscribe notes that the browser of a session wants to be notified.
func Subscribe(store *access.Store, c access.PushClient) error {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) || u.Host == "" {
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
