package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/fermata-agent/fermata/internal/regular"
)

// A listed tool is what a server says of one of its tools, as far as it is used. Lists are kept
// in files, so that a server whose list is known needs to be started only when it is called.
type listed struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	ReadOnly    bool            `json:"read_only,omitempty"`
	Destructive bool            `json:"destructive,omitempty"` // it says so itself
}

// A listing is everything that a server says it has. A file with only a list of tools, which earlier
// versions wrote, is as if there were none.
type listing struct {
	Tools     []listed   `json:"tools"`
	Prompts   []Prompt   `json:"prompts,omitempty"`
	Resources []Resource `json:"resources,omitempty"`
}

const (
	cacheAge   = 24 * time.Hour // an older list is used, and the server is started to renew it
	maxListing = 4 << 20        // longer lists are not kept
)

// cacheFile is where the list of the server is kept, empty if it is not. The name is a
// checksum of everything in the definition that the list may depend on. The values of
// tokens are not among that.
func (s *server) cacheFile() string {
	if s.opt.Cache == "" {
		return ""
	}
	env := map[string]string{}
	for name, v := range s.def.Env {
		env[name] = v.Reveal()
	}
	headers := map[string]string{}
	for name := range s.def.HTTPHeaders {
		headers[name] = ""
	}
	for name, variable := range s.def.EnvHTTPHeaders {
		headers[name] = variable
	}
	text, _ := json.Marshal([]any{ // strings: cannot fail
		s.def.Command, s.def.Args, s.dir(), env, s.def.EnvVars, s.def.URL, headers, s.def.BearerTokenEnvVar,
	})
	sum := sha256.Sum256(text)
	return filepath.Join(s.opt.Cache, hex.EncodeToString(sum[:16])+".json")
}

// dir is the directory that the server is started in.
func (s *server) dir() string {
	if s.def.Command == "" || s.def.Cwd != "" {
		return s.def.Cwd
	}
	return s.opt.Dir
}

// loadList returns the list of earlier, empty if there is none, and whether it is old.
func (s *server) loadList() (o offer, old bool) {
	file := s.cacheFile()
	if file == "" {
		return offer{}, false
	}
	info, err := os.Stat(file)
	if err != nil || info.Size() > maxListing {
		return offer{}, false
	}
	text, err := regular.ReadFile(file)
	if err != nil {
		return offer{}, false
	}
	var list listing
	if json.Unmarshal(text, &list) != nil || list.Tools == nil {
		return offer{}, false
	}
	age := time.Since(info.ModTime())
	return s.offered(list), age < 0 || age > cacheAge
}

// saveList keeps a list for the next time. If that fails, the server is started then.
func (s *server) saveList(list listing) {
	file := s.cacheFile()
	text, err := json.Marshal(list)
	if file == "" || err != nil || len(text) > maxListing || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*") // 0600
	if err != nil {
		return
	}
	defer os.Remove(f.Name()) // when it has its name this finds nothing
	_, err = f.Write(text)
	if f.Close() == nil && err == nil {
		_ = os.Rename(f.Name(), file)
	}
}
