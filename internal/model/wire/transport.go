package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"
)

// net/http goes on connecting when the request that wanted the connection was
// cancelled, in case another wants it. A stop has to mean that nothing of it is left, so
// our transport gets the request's context as a value, and obeys it.
type requestKey struct{}

func withRequest(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestKey{}, ctx)
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// bound makes a dial end with the request that it is for.
func bound(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		request, ok := ctx.Value(requestKey{}).(context.Context)
		if !ok {
			return dial(ctx, network, addr)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stop := context.AfterFunc(request, cancel)
		defer stop()
		return dial(ctx, network, addr)
	}
}

// tlsDialer connects and shakes hands; roots are those of the system if nil.
func tlsDialer(d *net.Dialer, roots *x509.CertPool) dialFunc {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, RootCAs: roots}
	return (&tls.Dialer{NetDialer: d, Config: config}).DialContext
}

// newTransport is the default transport of net/http, but for that.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:          http.ProxyFromEnvironment,
		DialContext:    bound(dialer.DialContext),
		DialTLSContext: bound(tlsDialer(dialer, nil)),

		ForceAttemptHTTP2:     true,
		MaxIdleConns:          10,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}
