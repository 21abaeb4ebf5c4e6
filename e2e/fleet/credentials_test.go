package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// A login is a server that wants credentials, settings that have them, and others that do not.
type login struct {
	name   string
	config string
	scheme string // of the address; "nats" if empty
	right  []string
	wrong  []badLogin
}

type badLogin struct {
	settings []string
	want     string // what is said
}

// Each kind of credentials opens the servers that want it, and no other does.
func TestCredentials(t *testing.T) {
	t.Parallel()
	for _, l := range []login{password(), token(), nkey(t), credsFile(t), certificate(t), clientCertificate(t)} {
		t.Run(l.name, func(t *testing.T) {
			o, err := server.ProcessConfigFile(keep(t, "server.conf", []byte(l.config)))
			if err != nil {
				t.Fatal(err)
			}
			url := listen(t, o).ClientURL()
			if l.scheme != "" {
				url = strings.Replace(url, "nats://", l.scheme+"://", 1)
			}
			right := newMachine(t, url, l.right...)
			right.must(append(turn, "hi")...)
			if out := right.must("doctor", "--demo"); !strings.Contains(out, "stream fermata") || strings.Contains(out, "no credentials") != (l.name == "certificate") {
				t.Errorf("doctor says %s", out)
			}
			for _, w := range l.wrong {
				m := newMachine(t, url, w.settings...)
				if out := m.must("doctor", "--demo"); !strings.Contains(out, "problem: ") || !strings.Contains(out, w.want) || strings.Contains(out, "hunter2") {
					t.Errorf("doctor with %q says %s, want %q", w.settings, out, w.want)
				}
			}
		})
	}
}

const refused = "refused the credentials"

func password() login {
	return login{
		name: "password", config: `authorization { user: bob, password: hunter2 }`,
		right: []string{`user = "bob"`, `password = "hunter2"`},
		wrong: []badLogin{
			{nil, refused},
			{[]string{`user = "bob"`, `password = "hunter22"`}, refused},
			{[]string{`token = "hunter2"`}, refused},
			{[]string{`password = "hunter2"`}, "[store] password is set without user"},
		},
	}
}

func token() login {
	return login{
		name: "token", config: `authorization { token: hunter2 }`,
		right: []string{`token = "hunter2"`},
		wrong: []badLogin{{nil, refused}, {[]string{`token = "hunter22"`}, refused}},
	}
}

// keep writes a file and returns its name.
func keep(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func setting(key, value string) string { return fmt.Sprintf("%s = %q", key, value) }

// keyPair returns a new key: its public half, and its seed.
func keyPair(t *testing.T, create func() (nkeys.KeyPair, error)) (key nkeys.KeyPair, public string, seed []byte) {
	t.Helper()
	key, err := create()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = key.PublicKey(); err != nil {
		t.Fatal(err)
	}
	if seed, err = key.Seed(); err != nil {
		t.Fatal(err)
	}
	return key, public, seed
}

func nkey(t *testing.T) login {
	_, public, seed := keyPair(t, nkeys.CreateUser)
	_, _, other := keyPair(t, nkeys.CreateUser)
	file := keep(t, "seed", seed)
	missing := filepath.Join(t.TempDir(), "missing")
	return login{
		name: "nkey", config: fmt.Sprintf("authorization { users: [ { nkey: %s } ] }", public),
		right: []string{setting("nkey", file)},
		wrong: []badLogin{
			{nil, refused},
			{[]string{setting("nkey", keep(t, "other", other))}, refused},
			{[]string{setting("nkey", missing)}, "read the nkey seed " + missing},
			{[]string{setting("nkey", keep(t, "garbage", []byte("garbage")))}, "read the nkey seed"},
		},
	}
}

func credsFile(t *testing.T) login {
	operator, public, _ := keyPair(t, nkeys.CreateOperator)
	oc := jwt.NewOperatorClaims(public)
	account, accountKey, _ := keyPair(t, nkeys.CreateAccount)
	ac := jwt.NewAccountClaims(accountKey)
	ac.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	system, systemKey, _ := keyPair(t, nkeys.CreateAccount)
	_ = system
	oc.SystemAccount = systemKey
	sc := jwt.NewAccountClaims(systemKey)
	encode := func(c interface {
		Encode(nkeys.KeyPair) (string, error)
	}, by nkeys.KeyPair,
	) string {
		text, err := c.Encode(by)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	user := func(by nkeys.KeyPair) string {
		_, public, seed := keyPair(t, nkeys.CreateUser)
		text, err := jwt.FormatUserConfig(encode(jwt.NewUserClaims(public), by), seed)
		if err != nil {
			t.Fatal(err)
		}
		return keep(t, "user.creds", text)
	}
	stranger, _, _ := keyPair(t, nkeys.CreateAccount)
	file, missing := user(account), filepath.Join(t.TempDir(), "missing")
	return login{
		name: "creds",
		config: fmt.Sprintf("operator: %s\nresolver: MEMORY\nresolver_preload { %s: %s, %s: %s }", encode(oc, operator),
			accountKey, encode(ac, operator), systemKey, encode(sc, operator)),
		right: []string{setting("creds", file)},
		wrong: []badLogin{
			{nil, refused},
			{[]string{setting("creds", user(stranger))}, refused},
			{[]string{setting("creds", missing)}, missing},
		},
	}
}

// An authority makes certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	cert, key := a.make(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	var err error
	block, _ := pem.Decode(cert)
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		t.Fatal(err)
	}
	a.key, a.file = key, keep(t, "ca.pem", cert)
	return a
}

func (a *authority) make(c *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "fermata test"}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// leaf returns files with a certificate and its key.
func (a *authority) leaf(usage x509.ExtKeyUsage) (cert, key string) {
	a.t.Helper()
	text, k := a.make(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{usage}})
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return keep(a.t, "cert.pem", text), keep(a.t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

func certificate(t *testing.T) login {
	ca, other := newAuthority(t), newAuthority(t)
	cert, key := ca.leaf(x509.ExtKeyUsageServerAuth)
	missing := filepath.Join(t.TempDir(), "missing")
	return login{
		name: "certificate", scheme: "tls",
		config: fmt.Sprintf("tls { cert_file: %q, key_file: %q }", cert, key),
		right:  []string{setting("ca", ca.file)},
		wrong: []badLogin{
			{nil, "set [store] ca to the certificate of that authority"},
			{[]string{setting("ca", other.file)}, "signed by an unknown authority"},
			{[]string{setting("ca", missing)}, missing},
		},
	}
}

func clientCertificate(t *testing.T) login {
	ca, other := newAuthority(t), newAuthority(t)
	cert, key := ca.leaf(x509.ExtKeyUsageServerAuth)
	mine, mineKey := ca.leaf(x509.ExtKeyUsageClientAuth)
	strange, strangeKey := other.leaf(x509.ExtKeyUsageClientAuth)
	trust := setting("ca", ca.file)
	return login{
		name: "client certificate", scheme: "tls",
		config: fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", cert, key, ca.file),
		right:  []string{trust, setting("cert", mine), setting("key", mineKey)},
		wrong: []badLogin{
			{[]string{trust}, "wants a certificate of this client: set [store] cert and key"},
			{[]string{trust, setting("cert", strange), setting("key", strangeKey)}, "does not accept the certificate of this client: check [store] cert and key"},
			{[]string{trust, setting("cert", mine), setting("key", strangeKey)}, "private key does not match"},
			{[]string{trust, setting("cert", mine)}, "[store] cert and key belong together"},
		},
	}
}
