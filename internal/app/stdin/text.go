package stdin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrNotText says that a prompt is not text.
var ErrNotText = errors.New("the prompt is not text: it is neither UTF-8 nor UTF-16 with a byte order mark")

// decodeText makes a prompt of what came on stdin: UTF-8, or UTF-16 with a byte
// order mark; the mark and white space around it are taken off.
func decodeText(b []byte) (string, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xfe, 0, 0}): // UTF-32, which would pass for UTF-16 with a NUL after each letter
		return "", ErrNotText
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	}
	if order != nil {
		if len(b)%2 != 0 {
			return "", ErrNotText // half a character was cut off
		}
		b = b[2:]
		units := make([]uint16, len(b)/2)
		for i := range units {
			units[i] = order.Uint16(b[2*i:])
		}
		return strings.TrimSpace(string(utf16.Decode(units))), nil
	}
	b = bytes.TrimPrefix(b, []byte{0xef, 0xbb, 0xbf})
	if !utf8.Valid(b) {
		return "", ErrNotText
	}
	return strings.TrimSpace(string(b)), nil
}
