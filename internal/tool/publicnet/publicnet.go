// Package publicnet connects to the public internet and to nothing else: not to this
// machine, and not to networks that only it can reach.
package publicnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// ErrPrivate is the error for an address that is not public.
var ErrPrivate = errors.New("the address is on this machine or its own network, which is not allowed without network access")

// A Dialer connects to addresses of the public internet only. It resolves a
// name once for each connection and connects to an address that it has checked, so
// that a name cannot mean something else a moment later.
type Dialer struct {
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// DialContext is for http.Transport.
func (d Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addresses { // all of them: which one would answer is not ours to choose
		if !IsPublic(a) {
			return nil, ErrPrivate
		}
	}
	for _, a := range addresses {
		var conn net.Conn
		if conn, err = d.Dial(ctx, network, net.JoinHostPort(a.Unmap().String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

func (d Dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	list, err := d.Lookup(ctx, "ip", host)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s has no address", host)
	}
	return list, err
}

// IsPublic reports whether an address belongs to the public internet. An IPv4
// address inside an IPv6 one is judged as what it is.
func IsPublic(a netip.Addr) bool {
	a = a.Unmap()
	if nat64.Contains(a) { // on networks with IPv6 only, every site that has IPv4 only is there
		bytes := a.As16()
		a = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	if a.Is6() && (a.Zone() != "" || !globalIPv6.Contains(a)) {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return a.IsValid()
}

var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	globalIPv6 = netip.MustParsePrefix("2000::/3") // nothing else is assigned
)

// notPublic are the addresses that the registries of special-purpose addresses (RFC 6890) do not count as
// globally reachable, and those that lead to an IPv4 address which cannot be seen.
var notPublic = parsePrefixes(
	"0.0.0.0/8",       // this network
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // behind a carrier's NAT; also Tailscale
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local; metadata of cloud machines
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // relays of 6to4
	"192.168.0.0/16",  // private
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, broadcast
	"2001::/23",       // protocol assignments, Teredo, benchmarks, ORCHID
	"2001:db8::/32",   // documentation
	"2002::/16",       // 6to4
	"3fff::/20",       // documentation
)

func parsePrefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}
