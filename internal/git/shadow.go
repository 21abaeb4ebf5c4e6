package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// kept are the settings that are taken over: those that say how files and
// references are to be read. None of them names a program.
var kept = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(core\.(filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|trustctime|checkstat|excludesfile|attributesfile)` +
		`|extensions\.(objectformat|refstorage)|(?s:branch\..*\.(remote|merge)|remote\..*\.fetch))$`)
})

// ours are the settings that git gets in any case. What is off here is off in
// each run, whatever the defaults of its version are.
const ours = `[core]
	bare = false
	logallrefupdates = false
	fsmonitor = false
	hooksPath = /dev/null
	splitIndex = false
	untrackedCache = false
	safecrlf = false
[gc]
	auto = 0
[maintenance]
	auto = false
[submodule]
	recurse = false
[protocol]
	allow = never
[advice]
	addEmbeddedRepo = false
`

// linked are the files and directories of a repository that a shadow shares,
// with the directory that they are in.
func (l Location) linked() map[string]string {
	links := map[string]string{}
	for _, name := range []string{"refs", "packed-refs", "reftable", "shallow", "info/exclude", "info/attributes"} {
		links[name] = filepath.Join(l.Common, name)
	}
	shared, _ := filepath.Glob(filepath.Join(globQuote(l.Dir), "sharedindex.*"))
	for _, name := range shared {
		links[filepath.Base(name)] = name
	}
	return links
}

var globSpecial = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[*?\[\\]`) })

func globQuote(s string) string { return globSpecial().ReplaceAllString(s, `\$0`) }

const shadowPrefix = "run-"

// makeShadow makes a git directory in scratch that has what the repository has,
// except for anything that could be executed.
func makeShadow(ctx context.Context, l Location, scratch string) (string, error) {
	config, err := shadowConfig(ctx, l)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return "", err
	}
	removeStale(scratch)
	dir, err := os.MkdirTemp(scratch, shadowPrefix)
	if err != nil {
		return "", err
	}
	if err := fillShadow(dir, l, config); err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	return dir, nil
}

func fillShadow(dir string, l Location, config string) error {
	for _, name := range []string{"objects", "info"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	head, err := readSmall(filepath.Join(l.Dir, "HEAD"))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"HEAD": head + "\n", "config": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	for name, target := range l.linked() {
		if info, err := os.Stat(target); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			continue
		}
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// staleAfter is when a shadow is abandoned: its process was killed.
const staleAfter = time.Hour

func removeStale(scratch string) {
	entries, err := os.ReadDir(scratch)
	if err != nil {
		return // a leftover is no reason to fail
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), shadowPrefix) && time.Since(info.ModTime()) > staleAfter {
			os.RemoveAll(filepath.Join(scratch, e.Name()))
		}
	}
}

// shadowConfig asks git for the settings of the repository and returns the
// configuration of its shadow. Listing settings executes nothing.
func shadowConfig(ctx context.Context, l Location) (string, error) {
	c := command{args: []string{"config", "--list", "-z"}, dir: l.Root}
	c.env = append(userEnviron(), "GIT_DIR="+l.Dir, "GIT_WORK_TREE="+l.Root)
	out, err := c.run(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(ours)
	version := 0
	files := map[string]string{"core.excludesfile": userFile("ignore"), "core.attributesfile": userFile("attributes")}
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		key, value, hasValue := strings.Cut(entry, "\n")
		if !kept().MatchString(key) {
			continue
		}
		if _, ok := files[key]; ok {
			files[key] = expandHome(value)
			continue
		}
		if strings.HasPrefix(key, "extensions.") {
			version = 1
		}
		if !hasValue { // the short form of true
			value = "true"
		}
		writeSetting(&b, key, value)
	}
	for key, name := range files {
		if name != "" {
			writeSetting(&b, key, name)
		}
	}
	fmt.Fprintf(&b, "[core]\n\trepositoryformatversion = %d\n", version)
	return b.String(), nil
}

var quoteValue = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`)

// writeSetting writes one setting as a configuration file has it. Git has no way
// to write a line feed in the middle of a key, so such a setting is left out.
func writeSetting(b *strings.Builder, key, value string) {
	section, name := key[:strings.IndexByte(key, '.')], key[strings.LastIndexByte(key, '.')+1:]
	sub := strings.TrimSuffix(strings.TrimPrefix(key, section+"."), name)
	if strings.ContainsAny(sub, "\n\r") {
		return
	}
	if sub != "" {
		section += ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.TrimSuffix(sub, ".")) + `"`
	}
	fmt.Fprintf(b, "[%s]\n\t%s = \"%s\"\n", section, name, quoteValue.Replace(value))
}

// userFile returns the file of the user's own that git reads when no setting
// names another.
func userFile(name string) string {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "git", name)
}

func expandHome(name string) string {
	rest, ok := strings.CutPrefix(name, "~/")
	home, err := os.UserHomeDir()
	if !ok || err != nil {
		return name
	}
	return filepath.Join(home, rest)
}
