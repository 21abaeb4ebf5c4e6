// Package refresh replaces the list of models in the home directory by a newer one.
package refresh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/model/catalogue"
	"github.com/fermata-agent/fermata/internal/regular"
)

// maxTable bounds what is read as a table of models.
const maxTable = 16 << 20

const refreshTime = 30 * time.Second

// Builtin is the name of the list of models that comes with the program.
const Builtin = "builtin"

// ErrNoSource says that no list was named.
var ErrNoSource = errors.New("--refresh needs a file, a URL, or " + Builtin)

// Models replaces the list of models in the home by one from a file or a URL, or by the
// built-in one. A list that cannot be used changes nothing. It returns the file, and how
// many models are in it.
func Models(ctx context.Context, home, from string) (file string, n int, err error) {
	file = catalogue.File(home)
	switch from {
	case "":
		return "", 0, ErrNoSource
	case Builtin:
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", 0, err
		}
	default:
		if err := replaceModels(ctx, file, from); err != nil {
			return "", 0, fmt.Errorf("refresh models from %s: %w", from, err)
		}
	}
	for range catalogue.Open(home).All() {
		n++
	}
	return file, n, nil
}

func replaceModels(ctx context.Context, file, from string) error {
	text, err := readTable(ctx, from)
	if err != nil {
		return err
	}
	if err := catalogue.Check(text); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return regular.Replace(file, []byte(text), 0o600)
}

func readTable(ctx context.Context, from string) (string, error) {
	if !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		f, err := os.Open(from)
		if err != nil {
			return "", err
		}
		defer f.Close()
		return readBounded(f)
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the server answered %s", resp.Status)
	}
	return readBounded(resp.Body)
}

func readBounded(r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxTable+1))
	if err == nil && len(data) > maxTable {
		err = fmt.Errorf("more than %d MiB", maxTable>>20)
	}
	return string(data), err
}
