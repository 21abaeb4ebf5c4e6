package git

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// protocols are those that a repository may be fetched by. None of them runs a program that its address names.
var protocols = []string{"https", "http", "ssh", "git", "file"}

// CheckURL says what is wrong with the address of a repository.
func CheckURL(address string) error {
	for _, r := range address {
		if r < ' ' || r == 0x7f {
			return errors.New("the URL has a control character")
		}
	}
	scheme, _, hasScheme := strings.Cut(address, "://")
	host, path, scp := strings.Cut(address, ":")
	switch {
	case filepath.IsAbs(address):
		return nil
	case hasScheme:
		if !slices.Contains(protocols, scheme) {
			return fmt.Errorf("%q is not a way to fetch: use %s", scheme+"://", strings.Join(protocols, ", "))
		}
		u, err := url.Parse(address)
		if err != nil {
			return errors.New("the URL cannot be read")
		}
		if _, ok := u.User.Password(); ok {
			return errors.New("the URL has a password: leave it out, and set up a credential helper of git on the machines that fetch")
		}
		return nil
	case scp && host != "" && host[0] != '-' && path != "" && path[0] != ':' && !strings.Contains(host, "/"): // user@host:path
		return nil
	}
	return fmt.Errorf("%q is not the URL of a repository, such as https://host/repository.git, or a path from the root", address)
}

// A Source is a commit of a repository that is somewhere else.
type Source struct {
	URL string `json:"url"`           // as CheckURL wants it
	Ref string `json:"ref,omitempty"` // a commit, a branch or a tag; empty is the HEAD of the repository
}

var fullName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{40}$`) })

// IsCommit reports whether a text is the whole name of a commit.
func IsCommit(s string) bool { return fullName().MatchString(s) }

// Clone makes a working tree with a repository of its own in dir, which must not exist or be empty, on a new branch
// at a commit of the source, and returns that. Settings of the user say how to fetch, and the user is not asked for a
// password; nothing that the repository names is run, and submodules are left out.
func Clone(ctx context.Context, from Source, dir, branch string) (string, error) {
	if err := CheckURL(from.URL); err != nil {
		return "", err
	}
	init := command{args: []string{"init", "-q", "--template=", "-b", "main", "--", dir}, env: plainEnviron(dir)}
	if _, err := init.run(ctx); err != nil {
		return "", err
	}
	w := madeTree(dir)
	if _, err := w.run(ctx, "config", "remote.origin.url", from.URL); err != nil {
		return "", err
	}
	if _, err := w.run(ctx, "config", "remote.origin.fetch", allBranches); err != nil {
		return "", err
	}
	if err := w.fetch(ctx, from.URL, "--tags", from.URL, "+HEAD:refs/remotes/origin/HEAD", allBranches); err != nil {
		return "", err
	}
	commit, err := w.resolve(ctx, from)
	if err != nil {
		return "", err
	}
	if _, err := w.run(ctx, "checkout", "-q", "-b", branch, commit, "--"); err != nil {
		return "", fmt.Errorf("check out %s: %w", commit, err)
	}
	return commit, nil
}

const allBranches = "+refs/heads/*:refs/remotes/origin/*"

// madeTree is a working tree that was made here, by us, and that no other process has used yet: its configuration
// is ours.
type madeTree string

func (w madeTree) run(ctx context.Context, args ...string) (string, error) {
	return w.command(args...).run(ctx)
}

func (w madeTree) command(args ...string) command {
	dir := filepath.Join(string(w), ".git")
	return command{args: args, dir: string(w), env: append(shadowEnviron(dir), "GIT_WORK_TREE="+string(w), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.hooksPath", "GIT_CONFIG_VALUE_0=/dev/null")}
}

// fetch fetches with the settings and keys of the user.
func (w madeTree) fetch(ctx context.Context, address string, args ...string) error {
	c := command{args: append([]string{"fetch", "-q", "--no-recurse-submodules", "--no-auto-maintenance", "--no-write-fetch-head"}, args...), dir: string(w), alone: true}
	c.env = append(userEnviron(), "GIT_DIR="+filepath.Join(string(w), ".git"), "GIT_ALLOW_PROTOCOL="+strings.Join(protocols, ":"),
		"GIT_ASKPASS=", "SSH_ASKPASS=", "SSH_ASKPASS_REQUIRE=never",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=core.hooksPath", "GIT_CONFIG_VALUE_0=/dev/null", "GIT_CONFIG_KEY_1=core.fsmonitor", "GIT_CONFIG_VALUE_1=false")
	c.env = append(c.env, fromOwn("SSH_AUTH_SOCK", "USER", "LOGNAME", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")...)
	if _, err := c.run(ctx); err != nil {
		return fmt.Errorf("fetch %s: %w", address, err)
	}
	return nil
}

// resolve finds the commit that is meant.
func (w madeTree) resolve(ctx context.Context, from Source) (string, error) {
	names := []string{"refs/remotes/origin/" + from.Ref, "refs/tags/" + from.Ref, from.Ref}
	switch {
	case from.Ref == "":
		names = []string{"refs/remotes/origin/HEAD"}
	case strings.HasPrefix(from.Ref, "-"):
		names = nil
	case IsCommit(from.Ref): // no branch of that name is meant
		names = []string{from.Ref}
	}
	for try := range 2 {
		for _, name := range names {
			if out, err := w.run(ctx, "rev-parse", "--verify", "--quiet", name+"^{commit}"); err == nil {
				return strings.TrimSpace(out), nil
			}
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if try > 0 || !IsCommit(from.Ref) {
			break
		}
		_ = w.fetch(ctx, from.URL, from.URL, from.Ref) // no branch or tag leads to it; some servers give it all the same
	}
	return "", fmt.Errorf("%q: %w in %s", from.Ref, ErrNoCommit, from.URL)
}

// plainEnviron is environ for a run outside of any repository.
func plainEnviron(dir string) []string {
	return append(environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1")
}
