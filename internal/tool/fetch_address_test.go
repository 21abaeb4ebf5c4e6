package tool

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/tool/publicnet"
)

// A name is resolved once for each connection, and what was checked is what is connected to. A redirect is
// a new connection, for which the name may mean something else.
func TestFetchConnectsToWhatItChecked(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "/page", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("the page"))
	}))
	t.Cleanup(srv.Close)
	for name, tt := range map[string]struct {
		path    string
		answers []string // of each lookup
		want    string
		dialed  string // all addresses
	}{
		"public":            {"/page", []string{"1.1.1.1"}, "the page", "1.1.1.1:80"},
		"a redirect":        {"/redirect", []string{"1.1.1.1", "8.8.8.8"}, "the page", "1.1.1.1:80 8.8.8.8:80"},
		"private":           {"/page", []string{"100.64.0.1"}, "! not allowed", ""},
		"one of them":       {"/page", []string{"1.1.1.1,127.0.0.1"}, "! not allowed", ""},
		"the name changes":  {"/redirect", []string{"1.1.1.1", "127.0.0.1"}, "! not allowed", "1.1.1.1:80"},
		"hidden in IPv6":    {"/page", []string{"64:ff9b::7f00:1"}, "! not allowed", ""},
		"mapped and public": {"/page", []string{"::ffff:1.1.1.1"}, "the page", "1.1.1.1:80"},
		"none":              {"/page", []string{""}, "! has no address", ""},
	} {
		var dialed []string
		d := publicnet.Dialer{
			Lookup: func(context.Context, string, string) (list []netip.Addr, err error) {
				if len(tt.answers) == 0 {
					return nil, errors.New("resolved once too often")
				}
				for s := range strings.SplitSeq(tt.answers[0], ",") {
					if a, err := netip.ParseAddr(s); err == nil {
						list = append(list, a)
					}
				}
				tt.answers = tt.answers[1:]
				return list, nil
			},
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				dialed = append(dialed, address)
				return new(net.Dialer).DialContext(ctx, network, srv.Listener.Addr().String())
			},
		}
		text, err := get(t.Context(), &url.URL{Scheme: "http", Host: "example.com", Path: tt.path}, &http.Transport{DialContext: d.DialContext}, sameHost)
		if want, fails := strings.CutPrefix(tt.want, "! "); fails != (err != nil) || err != nil && !strings.Contains(err.Error(), want) || err == nil && text != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if got := strings.Join(dialed, " "); got != tt.dialed {
			t.Errorf("%s: connected to %s, want %s", name, got, tt.dialed)
		}
	}
}
