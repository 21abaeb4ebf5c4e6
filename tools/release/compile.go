package main

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// binary is the file of a target's program.
func (r *release) binary(t target) string {
	return filepath.Join(r.work, t.os+"-"+t.arch, "fermata")
}

// host is the target of this machine, whose program can be run.
func host() target { return target{runtime.GOOS, runtime.GOARCH} }

// compile builds the program for each target, and for this machine.
func (r *release) compile(ctx context.Context) error {
	flags := "-s -w -buildid= -X " + r.variables + ".release=" + r.version
	if r.key != "" {
		key, err := r.signingKey()
		if err != nil {
			return err
		}
		flags += " -X " + r.variables + ".updateKey=" + base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
	}
	targets := r.targets
	if !slices.Contains(targets, host()) {
		targets = append(slices.Clip(targets), host())
	}
	for _, t := range targets {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", r.binary(t), r.program)
		cmd.Dir = r.root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOFLAGS=", "GOWORK=off")
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return nil
}

func (r *release) signingKey() (ed25519.PrivateKey, error) {
	seed, err := base64.StdEncoding.DecodeString(r.key)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, errors.New("FERMATA_SIGNING_KEY is not 32 bytes in base64")
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// A file is one that archives and packages have beside the program.
type file struct {
	name   string // in an archive
	path   string // on this machine
	system string // where a package of Linux puts it
}

// extras are the files that archives and packages have beside the program.
func (r *release) extras() ([]file, error) {
	files := []file{
		{"LICENSE", filepath.Join(r.root, "LICENSE"), "/usr/share/doc/fermata/copyright"},
		{"README.md", filepath.Join(r.root, "README.md"), "/usr/share/doc/fermata/README.md"},
		{"CHANGELOG.md", filepath.Join(r.root, "CHANGELOG.md"), "/usr/share/doc/fermata/CHANGELOG.md"},
		{"LICENSES.txt", filepath.Join(r.work, "LICENSES.txt"), "/usr/share/doc/fermata/LICENSES.txt"},
		{"completions/fermata.bash", filepath.Join(r.work, "completions", "fermata.bash"), "/usr/share/bash-completion/completions/fermata"},
		{"completions/fermata.fish", filepath.Join(r.work, "completions", "fermata.fish"), "/usr/share/fish/vendor_completions.d/fermata.fish"},
		{"completions/_fermata", filepath.Join(r.work, "completions", "_fermata"), "/usr/share/zsh/site-functions/_fermata"},
	}
	pages, err := filepath.Glob(filepath.Join(r.work, "man", "*.1"))
	for _, page := range pages { // sorted
		name := filepath.Base(page)
		files = append(files, file{"man/man1/" + name, page, "/usr/share/man/man1/" + name})
	}
	return files, err
}

// writeExtras has the program of this machine write its manual pages and completions.
func (r *release) writeExtras(ctx context.Context) error {
	for _, dir := range []string{"man", "completions"} {
		if err := os.Mkdir(filepath.Join(r.work, dir), 0o755); err != nil {
			return err
		}
	}
	if _, err := r.runProgram(ctx, "man", "--dir", filepath.Join(r.work, "man")); err != nil {
		return err
	}
	for shell, name := range map[string]string{"bash": "fermata.bash", "fish": "fermata.fish", "zsh": "_fermata"} {
		script, err := r.runProgram(ctx, "completion", shell)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.work, "completions", name), script, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// runProgram runs the program of this machine in an empty home and returns what it prints.
func (r *release) runProgram(ctx context.Context, args ...string) ([]byte, error) {
	home := filepath.Join(r.work, "home")
	if err := os.Mkdir(home, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, r.binary(host()), args...)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("fermata %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}
