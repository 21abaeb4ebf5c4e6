package listen

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/fermata-agent/fermata/internal/secrets"
)

// A Token is what a client must know to connect. Only its hash is kept.
type Token struct{ sum [sha256.Size]byte }

// minToken is the shortest token that is taken from a file.
const minToken = 16

// ReadToken reads a token from a file, which commands of the home cannot read from then on. Space around it does
// not count.
func ReadToken(home secrets.Home, file *secrets.File) (*Token, error) {
	text, err := file.Read(home)
	if err != nil {
		return nil, fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minToken {
		return nil, fmt.Errorf("the token in %s is shorter than %d characters", file, minToken)
	}
	return &Token{sha256.Sum256([]byte(token))}, nil
}

// ParseHash makes a token of its SHA-256.
func ParseHash(text string) (*Token, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != sha256.Size {
		return nil, errors.New("the hash of a token has 64 hexadecimal digits")
	}
	return &Token{[sha256.Size]byte(b)}, nil
}

// check says what is wrong with the token of a request; nothing if it is right.
func (t *Token) check(r *http.Request) string {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || given == "" {
		return "missing websocket bearer token"
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(given)))
	if subtle.ConstantTimeCompare(sum[:], t.sum[:]) != 1 {
		return "invalid websocket bearer token"
	}
	return ""
}
