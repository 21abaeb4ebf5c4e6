package web

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/fermata-agent/fermata/internal/app/unreachable"
	"github.com/fermata-agent/fermata/internal/regular"
	"github.com/fermata-agent/fermata/internal/secrets"
	"github.com/fermata-agent/fermata/internal/surface/web/access"
)

// An Address is where to serve.
type Address struct {
	Listen   string   // host:port; port 0 is LastPort if that is free, else any
	LastPort int      // where it was served before, so that pages find it again; may be 0
	Names    []string // other names of this machine by which the page is reached
	Cert     string   // a file; empty is a certificate of our own, where one is needed
	Key      secrets.File
	Plain    bool   // no TLS although others can listen on the way
	Home     string // where a certificate of our own is kept
}

// An Endpoint is a place that pages are served at.
type Endpoint struct {
	Origins     []string // the first one is for links
	Fingerprint string   // of a certificate of our own: its SHA-256
	listener    net.Listener
}

// Port is the one that it listens at.
func (e *Endpoint) Port() int {
	if a, ok := e.listener.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

// Listen listens at an address. Beyond loopback it does so with TLS.
func Listen(ctx context.Context, a Address) (*Endpoint, error) {
	host, port, err := net.SplitHostPort(a.Listen)
	if err != nil {
		return nil, fmt.Errorf("address %q: want HOST:PORT, such as 127.0.0.1:7777", a.Listen)
	}
	if (a.Cert != "") != a.Key.IsSet() {
		return nil, errors.New("a certificate needs its key, and a key its certificate")
	}
	if a.Plain && a.Cert != "" {
		return nil, errors.New("plain HTTP and a certificate exclude each other")
	}
	l, err := listen(ctx, host, port, a.LastPort)
	if err != nil {
		return nil, err
	}
	if l, err = unreachable.Listener(a.Home, l); err != nil {
		return nil, err
	}
	at, _ := l.Addr().(*net.TCPAddr)
	hosts := hostNames(host, at.IP, a.Names)
	e := &Endpoint{listener: limited(l)}
	scheme := "http"
	if a.Cert != "" || !at.IP.IsLoopback() && !a.Plain {
		cert, own, err := a.certificate(hosts)
		if err != nil {
			l.Close()
			return nil, err
		}
		if own {
			sum := sha256.Sum256(cert.Certificate[0])
			e.Fingerprint = fmt.Sprintf("%X", sum)
		}
		scheme = "https"
		e.listener = tls.NewListener(e.listener, &tls.Config{
			Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		})
	}
	for _, h := range hosts {
		e.Origins = append(e.Origins, scheme+"://"+net.JoinHostPort(h, strconv.Itoa(at.Port)))
	}
	return e, nil
}

func listen(ctx context.Context, host, port string, last int) (net.Listener, error) {
	var lc net.ListenConfig
	if port == "0" && last > 0 {
		if l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(last))); err == nil {
			return l, nil
		}
	}
	return lc.Listen(ctx, "tcp", net.JoinHostPort(host, port))
}

// hostNames are the names by which a listener is reached, the one for links first.
func hostNames(host string, ip net.IP, names []string) []string {
	list := slices.Clone(names)
	add := func(h string) {
		if h != "" && !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	switch {
	case ip.IsUnspecified():
		addrs, _ := net.InterfaceAddrs()
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
				add(n.IP.String())
			}
		}
		name, _ := os.Hostname()
		add(name)
		add("127.0.0.1")
		add("localhost")
	case ip.IsLoopback(): // not localhost: that is ::1 as well, where another program may listen and pass on what it is sent
		add(ip.String())
	default:
		add(host)
		add(ip.String())
	}
	return list
}

// certificate returns the given one, or one of our own for the names; it is kept, so that a browser that was set to
// trust it goes on to.
func (a Address) certificate(hosts []string) (cert tls.Certificate, own bool, err error) {
	if a.Cert != "" {
		cert, err = a.keyPair()
		return cert, false, err
	}
	file, old, err := access.ReadSecret(a.Home, "web-cert.pem")
	if err == nil {
		cert, err = tls.X509KeyPair(old, old)
	}
	if err == nil && fits(cert, hosts) {
		return cert, true, nil
	}
	text, err := newCertificate(hosts, time.Now())
	if err != nil {
		return cert, false, fmt.Errorf("make a certificate: %w", err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), regular.WriteFile(file, text, 0o600)); err != nil {
		return cert, false, fmt.Errorf("keep the certificate: %w", err)
	}
	cert, err = tls.X509KeyPair(text, text)
	return cert, true, err
}

// keyPair reads the given certificate and its key.
func (a Address) keyPair() (tls.Certificate, error) {
	public, err := os.ReadFile(a.Cert)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the certificate: %w", err)
	}
	private, err := a.Key.Read(secrets.Home(a.Home))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the key of the certificate: %w", err)
	}
	return tls.X509KeyPair(public, private)
}

// fits reports whether a certificate is for these names, and will be for a while.
func fits(cert tls.Certificate, hosts []string) bool {
	return cert.Leaf != nil && time.Until(cert.Leaf.NotAfter) > 7*24*time.Hour &&
		!slices.ContainsFunc(hosts, func(h string) bool { return cert.Leaf.VerifyHostname(h) != nil })
}

// newCertificate makes a key and a certificate for it, as PEM.
func newCertificate(hosts []string, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "fermata on " + cmp.Or(hosts...)}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, 390),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...), nil
}

// Limits of time. Who sends slowly is cut off.
const (
	headerTime  = 10 * time.Second
	requestTime = 60 * time.Second
	idleTime    = 2 * time.Minute
)

// What is read of a request before anything is known of its sender.
const (
	maxHeader = 16 << 10
	maxHTTP2  = 100 // at a time on one connection of HTTP/2
	maxAhead  = 256 << 10
)

// Serve serves until ctx ends. It closes the endpoint.
func (e *Endpoint) Serve(ctx context.Context, h http.Handler) error {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: requestTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0), // what strangers do wrong is theirs to know
		BaseContext: func(net.Listener) context.Context { return ctx }, ConnContext: withConnection,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxHTTP2, MaxReceiveBufferPerConnection: maxAhead, MaxReceiveBufferPerStream: maxAhead},
	}
	defer context.AfterFunc(ctx, func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if srv.Shutdown(end) != nil {
			_ = srv.Close()
		}
	})()
	err := srv.Serve(e.listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close stops listening.
func (e *Endpoint) Close() { _ = e.listener.Close() }
