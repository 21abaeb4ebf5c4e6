package web

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/fermata-agent/fermata/internal/surface/web/proof"
)

// foreignTime is how long a program that listens has to show that it is ours.
const foreignTime = 3 * time.Second

// Foreign reports whether a program listens at an origin that does not have our key.
func Foreign(ctx context.Context, origin string, key proof.Key) bool {
	ctx, cancel := context.WithTimeout(ctx, foreignTime)
	defer cancel()
	challenge := rand.Text()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+"/api/v1/hello?challenge="+challenge, nil)
	if err != nil {
		return false
	}
	there := false
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, // the signature says who it is
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			there = err == nil
			return c, err
		},
	}
	res, err := transport.RoundTrip(q)
	if err != nil {
		return there
	}
	defer res.Body.Close()
	var h proof.Hello
	err = json.NewDecoder(io.LimitReader(res.Body, strangerBody)).Decode(&h)
	return err != nil || h.Origin != origin || !h.Answers(challenge, key.Public())
}
