package tuicmd

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"
)

// clipboardTools print the image in the clipboard as PNG. Each is asked where its variable is set;
// the last is of macOS.
var clipboardTools = []struct {
	variable string
	argv     []string
}{
	{"WAYLAND_DISPLAY", []string{"wl-paste", "--type", "image/png"}},
	{"DISPLAY", []string{"xclip", "-selection", "clipboard", "-t", "image/png", "-o"}},
	{"", []string{"pngpaste", "-"}},
}

// clipboardTime is how long such a tool may take.
const clipboardTime = 5 * time.Second

// clipboardImage writes the image in the clipboard to a file that is only the user's.
func clipboardImage(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, clipboardTime)
	defer cancel()
	asked := false
	for _, t := range clipboardTools {
		if t.variable != "" && os.Getenv(t.variable) == "" {
			continue
		}
		name, err := exec.LookPath(t.argv[0])
		if err != nil {
			continue
		}
		asked = true
		data, err := exec.CommandContext(ctx, name, t.argv[1:]...).Output()
		if err == nil && bytes.HasPrefix(data, []byte("\x89PNG")) {
			return keepImage(data)
		}
	}
	if !asked {
		var names []string
		for _, t := range clipboardTools {
			names = append(names, t.argv[0])
		}
		return "", errors.New("the clipboard cannot be read: install " + strings.Join(names, ", ") + ", or paste the path of an image")
	}
	return "", errors.New("there is no image in the clipboard")
}

// keepImage keeps an image until it is sent; a draft may name it for days.
func keepImage(data []byte) (string, error) {
	f, err := os.CreateTemp("", "fermata-*.png")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}
