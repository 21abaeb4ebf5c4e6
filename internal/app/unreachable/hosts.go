package unreachable

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/secrets"
)

// A Dialer connects to servers whose addresses it registers before.
type Dialer struct {
	Home        secrets.Home
	URLs        []string // of all servers that are known
	DefaultPort int

	known sync.Map // addresses that are registered, as IP address and port
}

// Dial connects to one of the addresses of a server. All that are configured are registered before.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	if err := d.Register(append(d.URLs, address)...); err != nil {
		return nil, err
	}
	return net.DialTimeout(network, address, dialTimeout)
}

const dialTimeout = 2500 * time.Millisecond

// Register registers all addresses of servers. One whose name is not known now is registered when it
// is connected to.
func (d *Dialer) Register(urls ...string) error {
	for _, text := range urls {
		text = strings.TrimSpace(text)
		if !strings.Contains(text, "://") {
			text = "tcp://" + text
		}
		u, err := url.Parse(text)
		if err != nil {
			continue // the client reports it
		}
		if err := d.registerHost(u.Hostname(), u.Port()); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dialer) registerHost(host, port string) error {
	if port == "" {
		port = strconv.Itoa(d.DefaultPort)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil // the client reports it
	}
	for _, ip := range lookUp(host) {
		if _, again := d.known.LoadOrStore(net.JoinHostPort(ip.String(), port), true); again {
			continue
		}
		if _, err := d.Home.Listen(secrets.Address{IP: ip, Port: uint16(number)}); err != nil { // until this process ends
			return err
		}
	}
	return nil
}

// lookUp returns the addresses of a host, as far as they are known soon.
func lookUp(host string) []net.IP {
	if ip := net.ParseIP(host); ip != nil {
		return []net.IP{ip}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	ips, _ := net.DefaultResolver.LookupIP(ctx, "ip", host)
	return ips
}
