package config

import (
	"fmt"
	"io"
	"log/slog"
)

// mask is shown in place of a secret.
const mask = "•••"

// A Secret is a text that never appears by accident: whatever prints, encodes
// or logs it gets a mask. Reveal is the only way to the text.
type Secret struct {
	// A pointer, because fmt cannot call the methods of an unexported field and
	// would print the text of such a Secret; of a pointer it prints the address.
	text *string
}

// NewSecret hides a text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text. The zero Secret has none.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsSet reports whether there is a text.
func (s Secret) IsSet() bool { return s.Reveal() != "" }

// Equal compares the texts.
func (s Secret) Equal(t Secret) bool { return s.Reveal() == t.Reveal() }

// String returns the mask.
func (Secret) String() string { return mask }

// GoString returns the mask.
func (Secret) GoString() string { return mask }

// Format writes the mask, whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

// MarshalJSON returns the mask.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + mask + `"`), nil }

// MarshalText returns the mask.
func (Secret) MarshalText() ([]byte, error) { return []byte(mask), nil }

// LogValue returns the mask.
func (Secret) LogValue() slog.Value { return slog.StringValue(mask) }
