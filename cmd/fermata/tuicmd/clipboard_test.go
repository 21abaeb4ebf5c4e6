package tuicmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestClipboardImage(t *testing.T) {
	bin, tmp := t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin)
	t.Setenv("TMPDIR", tmp)
	t.Setenv("WAYLAND_DISPLAY", "")
	t.Setenv("DISPLAY", ":0")
	if _, err := clipboardImage(t.Context()); err == nil || !strings.Contains(err.Error(), "install wl-paste, xclip, pngpaste") {
		t.Errorf("without a tool: %v", err)
	}
	tool := func(script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(bin, "xclip"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, script := range []string{"exit 1", "echo text"} {
		tool(script)
		if _, err := clipboardImage(t.Context()); err == nil || err.Error() != "there is no image in the clipboard" {
			t.Errorf("%s: %v", script, err)
		}
	}
	tool(`printf '\211PNG rest'`)
	file, err := clipboardImage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil || string(data) != "\x89PNG rest" || filepath.Ext(file) != ".png" {
		t.Errorf("%s has %q, error %v", file, data, err)
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) != 1 {
		t.Errorf("files: %v", left)
	}
}
