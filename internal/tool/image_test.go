package tool

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/protocol"
)

func TestViewImage(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.png"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("words"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "big.png"), append(b.Bytes(), make([]byte, imageMax)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "empty.png"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a.png":                       "",
		filepath.Join(dir, "./a.png"): "",
		"missing.png":                 "no such file",
		"a.txt":                       "neither PNG",
		"big.png":                     "larger than",
		"pipe":                        "not a file",
		"empty.png":                   "is empty",
		"/dev/zero":                   "not a file",
		".":                           "not a file",
		"":                            "path is empty",
	} {
		res := ViewImage{}.Run(t.Context(), call(&fakeHost{}, dir, map[string]string{"path": path}))
		if want != "" {
			if !res.Output.Failed || !strings.Contains(res.Output.Output, want) || len(res.Output.Content) > 0 {
				t.Errorf("%q: %+v, want a failure with %q", path, res.Output, want)
			}
			continue
		}
		c := res.Output.Content
		if res.Output.Failed || len(c) != 1 || c[0].Type != protocol.ContentImage || !strings.HasPrefix(c[0].ImageURL, "data:image/png;base64,iVBOR") {
			t.Errorf("%q: %+v", path, res.Output)
		}
	}
	if res := (ViewImage{}).Run(t.Context(), Call{Arguments: "{"}); !res.Output.Failed {
		t.Errorf("half an argument: %+v", res.Output)
	}
}

// The kernel's log is a regular file by its mode, and reading it waits for more.
func TestViewImageOfAFileWithoutEnd(t *testing.T) {
	const name = "/proc/kmsg"
	f, err := os.Open(name)
	if err != nil {
		t.Skip(err)
	}
	f.Close()
	done := make(chan Result, 1)
	go func() { done <- ViewImage{}.Run(t.Context(), call(&fakeHost{}, "/", map[string]string{"path": name})) }()
	select {
	case res := <-done:
		if !res.Output.Failed {
			t.Errorf("%+v", res.Output)
		}
	case <-time.After(patience):
		t.Error("reading it does not end")
	}
}

// Which file an image is, links followed, is checked where it is opened.
func TestViewImageKeepsSecrets(t *testing.T) {
	dir := realDir(t)
	put(t, dir, "key.png", "\x89PNG\r\n\x1a\nsecret")
	if err := os.Symlink("key.png", filepath.Join(dir, "link.png")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"key.png", "link.png", filepath.Join(dir, "key.png")} {
		for isSecret, secret := range map[bool]func(string) bool{false: nil, true: func(path string) bool { return path == filepath.Join(dir, "key.png") }} {
			res := ViewImage{Secret: secret}.Run(t.Context(), call(&fakeHost{}, dir, map[string]string{"path": name}))
			if res.Output.Failed != isSecret || isSecret != strings.Contains(res.Output.Output, "must not be read") {
				t.Errorf("%s, secret %t: %+v", name, isSecret, res.Output)
			}
		}
	}
}
