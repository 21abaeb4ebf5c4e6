// Package proof lets a page and its server show each other who they are without handing over anything that a third
// could use, in the manner of DPoP (RFC 9449).
//
// A page has a key that cannot be taken out of its browser. With it it signs a [Claim] for each request: the method, the
// address with its port, the body, the time, an id that is used once, and a nonce of the server's process. A server has a
// key of its own, which the page learns when it logs in. With it it signs what the page asks it to, and each of its answers:
// another program that listens at the same address cannot, nor can it pass on what it was sent.
//
// Start with [Claim] and [Key].
package proof

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Headers of requests and answers.
const (
	Header       = "Fermata-Proof"  // of a request: a signed claim
	AnswerHeader = "Fermata-Answer" // of an answer: the server's signature
)

// A Claim is what a page signs for one request. Its names are those of RFC 9449.
type Claim struct {
	Session string `json:"session"` // empty for the one that opens it
	Method  string `json:"htm"`
	URL     string `json:"htu"` // with origin and query
	Time    int64  `json:"iat"` // in seconds
	ID      string `json:"jti"` // used once
	Nonce   string `json:"nonce"`
	Body    string `json:"body"` // its SHA-256 in base64

	signed    string
	signature string
}

// Limits of what is read before anything is known of the sender.
const (
	maxHeader = 4 << 10
	maxID     = 64
)

// ErrClaim says that a header holds no claim.
var ErrClaim = errors.New("the proof cannot be read")

// Parse reads the header of a request. The signature is not checked yet.
func Parse(header string) (Claim, error) {
	var c Claim
	signed, signature, ok := strings.Cut(header, ".")
	if !ok || len(header) > maxHeader {
		return c, ErrClaim
	}
	data, err := base64.RawURLEncoding.DecodeString(signed)
	if err != nil || json.Unmarshal(data, &c) != nil || c.ID == "" || len(c.ID) > maxID {
		return Claim{}, ErrClaim
	}
	c.signed, c.signature = signed, signature
	return c, nil
}

// SignedBy reports whether a claim was signed with the private part of a public key, as a browser exports it.
func (c Claim) SignedBy(public string) bool { return verify(public, c.signed, c.signature) }

// Has reports whether a claim is for this body.
func (c Claim) Has(body []byte) bool { return c.Body == hash(body) }

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func verify(public, text, signature string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(public)
	if err != nil {
		return false
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), raw)
	if err != nil {
		return false
	}
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || len(sig) != 64 {
		return false
	}
	sum := sha256.Sum256([]byte(text))
	return ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:]))
}

// ValidPublic reports whether a text is a public key.
func ValidPublic(public string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(public)
	if err != nil {
		return false
	}
	_, err = ecdsa.ParseUncompressedPublicKey(elliptic.P256(), raw)
	return err == nil
}

// A Key is the private key of a server, or of a client that is not a browser.
type Key struct {
	key    *ecdsa.PrivateKey
	public string
}

// NewKey makes a key.
func NewKey() (Key, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Key{}, err
	}
	return keyOf(key)
}

// ReadKey reads what Key.Text has written.
func ReadKey(text string) (Key, error) {
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return Key{}, fmt.Errorf("read the key of the server: %w", err)
	}
	private, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return Key{}, fmt.Errorf("read the key of the server: %w", err)
	}
	key, ok := private.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return Key{}, errors.New("read the key of the server: it is of another kind")
	}
	return keyOf(key)
}

func keyOf(key *ecdsa.PrivateKey) (Key, error) {
	raw, err := key.PublicKey.Bytes()
	if err != nil {
		return Key{}, err
	}
	return Key{key, base64.RawURLEncoding.EncodeToString(raw)}, nil
}

// Text is the key as it is kept. It is a secret.
func (k Key) Text() (string, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.key)
	return base64.StdEncoding.EncodeToString(der), err
}

// Public is the public key as browsers write it.
func (k Key) Public() string { return k.public }

// Print is a short name of the public key, for links.
func (k Key) Print() string { return printOf(k.public) }

const printLength = 16 // bytes of a SHA-256: another key with the same ones cannot be found

func printOf(public string) string {
	raw, _ := base64.RawURLEncoding.DecodeString(public)
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:printLength])
}

func (k Key) sign(text string) string {
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, k.key, sum[:])
	if err != nil {
		panic(err) // the key is one of ours, and the system has randomness
	}
	var sig [64]byte
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return base64.RawURLEncoding.EncodeToString(sig[:])
}

// Claim signs a claim: it is what a page does, for clients that are not browsers and for tests.
func (k Key) Claim(c Claim, body []byte) (header string) {
	c.Body = hash(body)
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // it has only texts and numbers
	}
	signed := base64.RawURLEncoding.EncodeToString(data)
	return signed + "." + k.sign(signed)
}

// A Hello is how a server shows who it is, before anything is sent to it.
type Hello struct {
	Key       string `json:"key"`
	Origin    string `json:"origin"`
	Nonce     string `json:"nonce"` // of its process: claims name it
	Time      int64  `json:"time"`  // its clock: claims are by it
	Signature string `json:"signature"`
}

func (h Hello) text(challenge string) string {
	return fmt.Sprintf("fermata hello\n%s\n%s\n%s\n%d", challenge, h.Origin, h.Nonce, h.Time)
}

// Hello answers a challenge.
func (k Key) Hello(challenge, origin, nonce string, time int64) Hello {
	h := Hello{Key: k.public, Origin: origin, Nonce: nonce, Time: time}
	h.Signature = k.sign(h.text(challenge))
	return h
}

// Answers reports whether it answers a challenge and was signed with the private part of a public key.
func (h Hello) Answers(challenge, public string) bool {
	return verify(public, h.text(challenge), h.Signature)
}

func answerText(id, origin string) string { return "fermata answer\n" + id + "\n" + origin }

// Answer signs the answer to the request with a claim's id. The origin is in it, so that another site cannot pass on the
// answer of a server that listens elsewhere.
func (k Key) Answer(id, origin string) string { return k.sign(answerText(id, origin)) }

// AnsweredBy reports whether the answer to a request was signed with the private part of a public key.
func AnsweredBy(public, id, origin, signature string) bool {
	return verify(public, answerText(id, origin), signature)
}
