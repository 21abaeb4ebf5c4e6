package stdin

import (
	"errors"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "echo ä", "echo ä"},
		{"white space around it", "\n\n  one\n two\n\n", "one\n two"},
		{"nothing", " \n", ""},
		{"a mark", "\xef\xbb\xbfone", "one"},
		{"UTF-16, little end first", "\xff\xfeo\x00 \x00\xe4\x00", "o ä"},
		{"UTF-16, big end first", "\xfe\xff\x00o\x00 \x00\xe4", "o ä"},
		{"UTF-16, a pair", "\xff\xfe\x3d\xd8\x00\xde", "😀"},
	}
	for _, tt := range tests {
		if got, err := Read(strings.NewReader(tt.in), func() {}); got != tt.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestNotText(t *testing.T) {
	for _, in := range []string{"\xc3\x28", "\xff\xfer\x00u", "\xff\xfe\x00\x00r\x00\x00\x00"} {
		if got, err := Read(strings.NewReader(in), func() {}); !errors.Is(err, ErrNotText) {
			t.Errorf("%q: %q, %v, want %v", in, got, err, ErrNotText)
		}
	}
}

// A stream without an end is refused, as a prompt and beside one.
func TestPromptTooLarge(t *testing.T) {
	defer func(n int64) { promptMax = n }(promptMax)
	promptMax = 1 << 20
	want := "the prompt on stdin is larger than 1 MiB"
	if _, err := Read(endless{}, func() {}); err == nil || err.Error() != want {
		t.Errorf("as a prompt: %v, want %s", err, want)
	}
	if _, _, err := ReadBeside(endless{}, func() {}); err == nil || err.Error() != want {
		t.Errorf("beside a prompt: %v, want %s", err, want)
	}
	text := strings.Repeat("x", 1<<20)
	if got, err := Read(strings.NewReader(text), func() {}); got != text || err != nil {
		t.Errorf("as large as it may be: %d bytes, %v", len(got), err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'y'
	}
	return len(p), nil
}
