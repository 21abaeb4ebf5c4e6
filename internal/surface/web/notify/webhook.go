package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// A Webhook is an address that gets what happens, signed as Standard Webhooks are: the header
// webhook-signature is "v1," and the base64 of the HMAC-SHA256 of "ID.TIMESTAMP.BODY".
type Webhook struct {
	url    string
	secret string
	client *http.Client
	waits  []time.Duration // before it is tried again
}

// NewWebhook makes a webhook. What is sent can contain secrets, so that it needs TLS or an address on this machine.
func NewWebhook(to, secret string) (*Webhook, error) {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return nil, fmt.Errorf("notify_webhook.url %q: want https, or http on this machine", to)
	}
	if secret == "" {
		return nil, errors.New("notify_webhook.secret is not set: the receiver could not know who sent a notification")
	}
	return &Webhook{to, secret, client(), []time.Duration{time.Second, 5 * time.Second, 25 * time.Second}}, nil
}

func isLoopback(host string) bool { return host == "127.0.0.1" || host == "::1" || host == "localhost" }

// client follows no redirects: what is sent goes where it was configured to go.
func client() *http.Client {
	return &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// send sends a message, a few times if need be, always under the same id.
func (w *Webhook) send(ctx context.Context, m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		again, err := w.post(ctx, m.ID(), body)
		if err == nil {
			return nil
		}
		if !again || i >= len(w.waits) {
			return fmt.Errorf("notify the webhook: %w", err)
		}
		select {
		case <-time.After(w.waits[i]):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// post reports whether it is worth trying again.
func (w *Webhook) post(ctx context.Context, id string, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "fermata")
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", at)
	r.Header.Set("webhook-signature", Sign(w.secret, id, at, body))
	res, err := w.client.Do(r)
	if err != nil {
		return true, err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection can be used again
	if res.StatusCode/100 == 2 {
		return false, nil
	}
	return res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests, fmt.Errorf("it answered %s", res.Status)
}

// Sign is the signature of a message. A secret that begins with whsec_ is base64, as Standard Webhooks write it.
func Sign(secret, id, timestamp string, body []byte) string {
	key := []byte(secret)
	if rest, ok := bytes.CutPrefix(key, []byte("whsec_")); ok {
		if raw, err := base64.StdEncoding.DecodeString(string(rest)); err == nil {
			key = raw
		}
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + timestamp + "."))
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}
