// Command release builds everything that is published of a version: programs, archives,
// packages for Debian, Red Hat and Alpine, packages for npm, a formula for Homebrew, a list of
// what is inside, licences and checksums. It needs no network once the modules are there, and
// two builds of one commit are equal.
//
//	go run -C tools/release . --out ../../dist
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	r := release{program: "./cmd/fermata", variables: "github.com/fermata-agent/fermata/cmd/fermata/cli"}
	var targets string
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.root, "root", "../..", "the checkout to build")
	flags.StringVar(&r.out, "out", "../../dist", "the directory to write to; it must be empty or missing")
	flags.StringVar(&r.version, "version", "", "the version; the newest of CHANGELOG.md if empty")
	flags.StringVar(&targets, "targets", "all", "what to build for, such as linux/amd64,darwin/arm64")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	r.key = os.Getenv("FERMATA_SIGNING_KEY")
	if err := r.prepare(ctx, targets); err != nil {
		return err
	}
	return r.build(ctx)
}

// A release is a version that is being built.
type release struct {
	root    string    // the checkout
	out     string    // where everything is written to
	version string    // such as v0.3.0
	time    time.Time // of the commit: every file carries it
	targets []target
	key     string // the seed of the key that signs the checksums, in base64; empty: nothing is signed

	program   string // the package of the program
	variables string // the package whose variables the version and the public key are set in

	work  string // a directory for what is not published
	parts []part // what the programs are made of
}

// A target is a system and a processor, by Go's names.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

var allTargets = []target{
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"darwin", "amd64"},
	{"darwin", "arm64"},
	{"freebsd", "amd64"},
	{"freebsd", "arm64"},
}

// prepare checks what it was asked for and finds the rest.
func (r *release) prepare(ctx context.Context, targets string) error {
	var err error
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if names, err := os.ReadDir(r.out); err == nil && len(names) > 0 {
		return fmt.Errorf("%s is not empty", r.out)
	}
	if r.targets, err = parseTargets(targets); err != nil {
		return err
	}
	if r.version == "" {
		if r.version, err = newestVersion(filepath.Join(r.root, "CHANGELOG.md")); err != nil {
			return err
		}
	}
	if !versionForm.MatchString(r.version) {
		return fmt.Errorf("%q is no version such as v1.2.3", r.version)
	}
	r.time, err = commitTime(ctx, r.root)
	return err
}

var (
	versionForm = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`)
	heading     = regexp.MustCompile(`(?m)^## (v\S+)`)
)

func newestVersion(changelog string) (string, error) {
	text, err := os.ReadFile(changelog)
	if err != nil {
		return "", err
	}
	found := heading.FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("%s has no heading such as \"## v1.2.3\"", changelog)
	}
	return string(found[1]), nil
}

func parseTargets(list string) ([]target, error) {
	if list == "all" {
		return allTargets, nil
	}
	var targets []target
	for name := range strings.SplitSeq(list, ",") {
		os, arch, ok := strings.Cut(name, "/")
		if !ok {
			return nil, fmt.Errorf("target %q is no system/processor such as linux/amd64", name)
		}
		if _, ok := npmNames[target{os, arch}]; !ok {
			return nil, fmt.Errorf("target %q: there are %v", name, allTargets)
		}
		targets = append(targets, target{os, arch})
	}
	return targets, nil
}

// commitTime is the time that all files of the release carry: that of the commit, or what
// the variable says that reproducible builds share.
func commitTime(ctx context.Context, root string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.CommandContext(ctx, "git", "-C", root, "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("the time of the commit: %w (set SOURCE_DATE_EPOCH where there is no git)", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the time of the commit: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// build makes everything, in the order in which one needs the other.
func (r *release) build(ctx context.Context) (err error) {
	if r.work, err = os.MkdirTemp("", "fermata-release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"programs", r.compile},
		{"manual pages and completions", r.writeExtras},
		{"parts", r.findParts},
		{"licences", r.writeLicences},
		{"list of parts", r.writeParts},
		{"archives", r.writeArchives},
		{"packages for Linux", r.writePackages},
		{"packages for npm", r.writeNPM},
		{"formula for Homebrew", r.writeFormula},
		{"install script", r.writeInstaller},
		{"checksums", r.writeChecksums},
	}
	for _, s := range steps {
		began := time.Now()
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", s.name, time.Since(began).Round(time.Millisecond))
	}
	return nil
}
