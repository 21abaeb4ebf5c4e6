package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// A damagedHome is a copy of a home with one thing wrong.
type damagedHome struct {
	home    string
	journal string // of the conversation that is named
	other   string // of another one
	work    string
}

// odd puts what is not a regular file at a path: what takes it for one waits for ever, or reads for ever.
var odd = map[string]func(path string) error{
	"pipe":       func(path string) error { return syscall.Mkfifo(path, 0o666) },
	"zero":       func(path string) error { return os.Symlink("/dev/zero", path) },
	"itself":     func(path string) error { return os.Symlink(filepath.Base(path), path) },
	"nothing":    func(path string) error { return os.Symlink("nowhere", path) },
	"link above": func(path string) error { return os.Symlink("..", path) },
	"terabyte":   func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o666), os.Truncate(path, 1<<40)) }, // sparse
}

// readToTheEnd are places of files that may have any size, and are read to their end.
var readToTheEnd = []string{"journal", "damaged", "rescued"}

// oddFiles are the places of files and directories in a home and a project.
var oddFiles = map[string]func(d damagedHome) string{
	"journal":       func(d damagedHome) string { return d.journal },
	"lock":          func(d damagedHome) string { return d.journal + ".lock" },
	"checkpoint":    func(d damagedHome) string { return d.journal + ".ckpt" },
	"damaged":       func(d damagedHome) string { return d.journal + ".damaged" },
	"rescued":       func(d damagedHome) string { return d.journal + ".rescued1" },
	"day":           func(d damagedHome) string { return filepath.Dir(d.journal) },
	"conversations": inHome("conversations"),
	"archived":      inHome("archived"),
	"run":           inHome("run"),
	"config":        inHome("config.toml"),
	"keys":          inHome("keys"),
	"auth":          inHome("auth.json"),
	"variables":     inHome(".env"),
	"rules":         inHome("rules"),
	"trust":         inHome("trust.toml"),
	"models":        inHome("models.json"),
	"drafts":        inHome("drafts"),
	"history":       inHome("history.jsonl"),
	"skills":        inHome("skills"),
	"prompts":       inHome("prompts"),
	"instructions":  inHome("AGENTS.md"),
	"project":       func(d damagedHome) string { return filepath.Join(d.work, "AGENTS.md") },
	"servers":       func(d damagedHome) string { return filepath.Join(d.work, ".mcp.json") },
}

func inHome(name string) func(damagedHome) string {
	return func(d damagedHome) string { return filepath.Join(d.home, name) }
}

// otherDamage is damage of other kinds.
var otherDamage = map[string]func(d damagedHome) error{
	"line in front": func(d damagedHome) error {
		return mixLines(d, func(own, other [][]byte) [][]byte { return append(other[:1], own...) })
	},
	"lines behind": func(d damagedHome) error {
		return mixLines(d, func(own, other [][]byte) [][]byte { return append(own, other...) })
	},
	"lines between": func(d damagedHome) error {
		return mixLines(d, func(own, other [][]byte) [][]byte { return slices.Concat(own[:1], other[:2], own[1:], other[2:]) })
	},
	"upper case": func(d damagedHome) error {
		return os.Rename(d.journal, filepath.Join(filepath.Dir(d.journal), strings.ToUpper(filepath.Base(d.journal))))
	},
	"file of another user":      func(d damagedHome) error { return shut(d.journal) },
	"directory of another user": func(d damagedHome) error { return shut(filepath.Dir(d.journal)) },
	"home of another user":      func(d damagedHome) error { return shut(d.home) },
	"read-only directory":       func(d damagedHome) error { return give(filepath.Dir(d.journal), 0o555) },
}

func shut(path string) error { return give(path, 0) }

// give makes something root's if there are other users, else the mode has to do.
func give(path string, mode fs.FileMode) error {
	if os.Getuid() == 0 {
		if err := os.Lchown(path, 0, 0); err != nil {
			return err
		}
	}
	return os.Chmod(path, mode)
}

func mixLines(d damagedHome, mix func(own, other [][]byte) [][]byte) error {
	var files [2][][]byte
	for i, name := range []string{d.journal, d.other} {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files[i] = slices.Collect(bytes.Lines(text))
	}
	return os.WriteFile(d.journal, bytes.Join(mix(files[0], files[1]), nil), 0o600)
}

// damages are all of them, by name.
func damages() map[string]func(d damagedHome) error {
	all := maps.Clone(otherDamage)
	for place, path := range oddFiles {
		for kind, put := range odd {
			if kind == "terabyte" && slices.Contains(readToTheEnd, place) {
				continue
			}
			all[place+" is "+kind] = func(d damagedHome) error {
				if err := os.RemoveAll(path(d)); err != nil {
					return err
				}
				return put(path(d))
			}
		}
	}
	return all
}

// homeCommands read a home.
var homeCommands = [][]string{
	{"list"},
	{"list", "--archived"},
	{"show", "ID"},
	{"exec", "resume", "ID", "what happened?"},
	{"exec", "--demo", "talk 1"},
	{"exec", "resume", "--last", "x"},
	{"fsck"},
	{"fsck", "--repair"},
	{"fsck", "--repair", "ID"},
	{"export", "ID"},
	{"ps"},
	{"ps", "ID"},
	{"attach", "ID"},
	{"archive", "ID"},
	{"unarchive", "ID"},
	{"delete", "--yes", "ID"},
	{"rename", "ID", "title"},
	{"undo", "--yes", "ID"},
	{"send", "ID", "x"},
	{"interrupt", "ID"},
	{"stop"},
	{"store", "copy", "--from", "files", "--to", "COPY"},
	{"doctor"},
	{"config", "show"},
	{"models"},
	{"permissions"},
	{"mcp", "list"},
	{"trust"},
}

// No command waits for ever or panics, whatever is wrong with a home, and none says that there are no conversations where they cannot be
// read. A plain run gives each damage some of the commands, so that each has its turn.
func TestNoCommandWaitsForADamagedHome(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	if os.Getuid() == 0 {
		pl = newPlaceFor(t, nobody)
	}
	pl.must("exec", "--demo", "write beta: text")
	other := string(pl.conversations()[0].ID)
	pl.must("exec", "--demo", "write alpha: text")
	id := string(pl.conversations()[0].ID)
	all := damages()
	share := longtest.Default(len(homeCommands), 1)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		for k := range share {
			args := slices.Clone(homeCommands[(i*share+k)%len(homeCommands)])
			if args[0] == "attach" && !strings.HasPrefix(name, "journal is ") {
				continue // it follows what can be read until it is interrupted
			}
			d, here := pl.copyHome(id, other)
			if err := all[name](d); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for j, arg := range args {
				args[j] = strings.NewReplacer("ID", id, "COPY", filepath.Join(d.work, "copy")).Replace(arg)
			}
			here.expectEnd(name, args)
			here.removeHome(d)
		}
	}
}

// copyHome returns a copy of the place's home and a working directory, and a place that uses them.
func (pl *place) copyHome(id, other string) (damagedHome, *place) {
	pl.t.Helper()
	dir, err := os.MkdirTemp(pl.dir, "copy")
	if err != nil {
		pl.t.Fatal(err)
	}
	d := damagedHome{home: filepath.Join(dir, "fermata"), work: filepath.Join(dir, "work")}
	if err := os.CopyFS(d.home, os.DirFS(filepath.Join(pl.dir, "home", "fermata"))); err != nil {
		pl.t.Fatal(err)
	}
	if err := os.Mkdir(d.work, 0o755); err != nil {
		pl.t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, id+".jsonl") {
			d.journal = path
		} else if strings.HasSuffix(path, other+".jsonl") {
			d.other = path
		}
		if pl.user != nil && err == nil {
			err = os.Lchown(path, int(pl.user.Uid), int(pl.user.Gid))
		}
		return err
	})
	if err != nil {
		pl.t.Fatal(err)
	}
	here := *pl
	here.work = d.work
	here.env = append(slices.Clone(pl.env), "FERMATA_HOME="+d.home)
	return d, &here
}

// expectEnd runs a command, which has to end by itself, and say what is wrong.
func (pl *place) expectEnd(damage string, args []string) {
	pl.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := pl.command(ctx, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	code := cmd.ProcessState.ExitCode()
	switch text := out.String(); {
	case ctx.Err() != nil || code < 0:
		pl.t.Errorf("%s: fermata %q did not end: %v\n%s", damage, args, err, text)
	case strings.Contains(text, "goroutine "):
		pl.t.Errorf("%s: fermata %q panics:\n%s", damage, args, text)
	case args[0] == "list" && len(args) == 1 && strings.Contains(text, "no conversations"):
		pl.t.Errorf("%s: fermata list says that there is nothing:\n%s", damage, text)
	case code != 0 && strings.TrimSpace(text) == "":
		pl.t.Errorf("%s: fermata %q fails without a word", damage, args)
	}
}

// removeHome removes a copy, also what its owner may not.
func (pl *place) removeHome(d damagedHome) {
	pl.t.Helper()
	for _, path := range []string{d.home, filepath.Dir(d.journal)} {
		if st, err := os.Lstat(path); err == nil && st.IsDir() { // a link may lead to a device
			_ = os.Chmod(path, 0o700) // else RemoveAll says so
		}
	}
	if err := os.RemoveAll(filepath.Dir(d.home)); err != nil {
		pl.t.Error(err)
	}
}
