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
)

// What is not on the public internet is not reached, in whatever form it is written.
func TestPublicAddresses(t *testing.T) {
	for _, s := range strings.Fields(`
		0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.8.9.10 169.254.169.254 172.16.0.1 172.31.255.255
		192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
		:: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:100.64.0.1 ::ffff:0:10.0.0.1
		64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b::100.64.1.1 64:ff9b:1::1.1.1.1 64:ff9b::1:1.1.1.1
		100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::1 2002:101:101::1 3fff::1
		4000::1 5f00::1 fc00::1 fd12::1 fe80::1 fe80::1%eth0 2606:4700::1%eth0 fec0::1 ff02::1`) {
		if isPublic(netip.MustParseAddr(s)) {
			t.Errorf("%s counts as public", s)
		}
	}
	if isPublic(netip.Addr{}) {
		t.Error("no address counts as public")
	}
	for _, s := range strings.Fields(`1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.1 172.32.0.1 192.0.1.1 198.17.0.1 198.20.0.1 223.255.255.255
		::ffff:1.1.1.1 64:ff9b::1.1.1.1 2606:4700::1111 2001:200::1 2a00:1450::1 3ffe::1`) {
		if !isPublic(netip.MustParseAddr(s)) {
			t.Errorf("%s does not count as public", s)
		}
	}
}

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
		d := publicDialer{
			lookup: func(context.Context, string, string) (list []netip.Addr, err error) {
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
			dial: func(ctx context.Context, network, address string) (net.Conn, error) {
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
