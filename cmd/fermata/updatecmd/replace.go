package updatecmd

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/fermata-agent/fermata/internal/regular"
)

// The most that is downloaded: a list of checksums, and an archive.
const (
	maxList    = 1 << 20
	maxArchive = 200 << 20
)

// A newer is a version that can be had.
type newer struct {
	version string // such as v1.2.3
	archive string // the file for this machine
	sum     string // its SHA-256, in hexadecimal
	base    string // where it is downloaded from
}

// newest asks for the newest version, and believes the answer only if it is signed.
func newest(ctx context.Context, from, key string) (newer, error) {
	public, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return newer{}, errors.New("this copy was built with a key that is none")
	}
	n := newer{base: strings.TrimSuffix(from, "/download") + "/latest/download/"}
	list, err := download(ctx, n.base+"SHA256SUMS", maxList)
	if err != nil {
		return n, err
	}
	text, err := download(ctx, n.base+"SHA256SUMS.sig", maxList)
	if err != nil {
		return n, err
	}
	signature, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || !ed25519.Verify(public, list, signature) {
		return n, fmt.Errorf("%sSHA256SUMS is not signed by the key that this copy knows: nothing was changed", n.base)
	}
	form := regexp.MustCompile(`(?m)^([0-9a-f]{64})  (fermata_(\S+)_` + runtime.GOOS + `_` + runtime.GOARCH + `\.tar\.gz)$`)
	found := form.FindStringSubmatch(string(list))
	if found == nil {
		return n, fmt.Errorf("there is no program for %s/%s in %s", runtime.GOOS, runtime.GOARCH, n.base)
	}
	n.sum, n.archive, n.version = found[1], found[2], "v"+found[3]
	return n, nil
}

func download(ctx context.Context, url string, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", url, limit)
	}
	return data, err
}

// install downloads a version and puts its files where the install script puts them. The program is
// the last, and by a rename: what runs keeps its own file, and a crash leaves the old one or the new one.
func (n newer) install(ctx context.Context, prefix string) error {
	data, err := download(ctx, n.base+n.archive, maxArchive)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != n.sum {
		return fmt.Errorf("%s is not what SHA256SUMS says: nothing was changed", n.archive)
	}
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	files := tar.NewReader(zip)
	var program []byte
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		if h.Name == "fermata" {
			program = text
		} else if to := place(h.Name); to != "" {
			if err := replace(filepath.Join(prefix, to), text, 0o644); err != nil {
				return err
			}
		}
	}
	if len(program) == 0 {
		return fmt.Errorf("%s has no program", n.archive)
	}
	return replace(filepath.Join(prefix, "bin", "fermata"), program, 0o755)
}

// place is where a file of the archive goes below the prefix; empty if it is not installed.
func place(name string) string {
	base := path.Base(name)
	switch {
	case path.Dir(name) == "man/man1":
		return "share/man/man1/" + base
	case name == "completions/fermata.bash":
		return "share/bash-completion/completions/fermata"
	case name == "completions/fermata.fish":
		return "share/fish/vendor_completions.d/fermata.fish"
	case name == "completions/_fermata":
		return "share/zsh/site-functions/_fermata"
	case name == "LICENSE", name == "LICENSES.txt", name == "CHANGELOG.md":
		return "share/fermata/" + base
	}
	return ""
}

// replace writes a file whole, or not at all, and the directory it is in.
func replace(name string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return regular.Replace(name, data, mode)
}

var versionForm = regexp.MustCompile(`^v(\d+)\.(\d+)\.(\d+)(-.*)?$`)

// isNewer reports whether a version comes after another. One before a release, such as
// v1.0.0-rc1, comes before it.
func isNewer(a, b string) bool {
	x, y := versionForm.FindStringSubmatch(a), versionForm.FindStringSubmatch(b)
	if x == nil || y == nil {
		return x != nil
	}
	for i := 1; i <= 3; i++ {
		m, _ := strconv.Atoi(x[i])
		n, _ := strconv.Atoi(y[i])
		if m != n {
			return m > n
		}
	}
	return x[4] != y[4] && (x[4] == "" || y[4] != "" && x[4] > y[4])
}
