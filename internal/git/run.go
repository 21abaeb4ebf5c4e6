package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A command is one run of git.
type command struct {
	args []string
	dir  string
	env  []string
	in   string
	max  int // how much it may print; 0 is outputMax

	alone bool // without a terminal: a program that git runs cannot ask for a password there
}

// outputMax bounds what is kept in memory of one run.
const outputMax = 256 << 20

// waitDelay is how long a pipe that a killed git left open is waited for.
const waitDelay = 2 * time.Second

// ErrTooMuch means that git printed more than is kept.
var ErrTooMuch = errors.New("the output is too large")

// run runs git to its end and returns what it printed.
func (c command) run(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "git", c.args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.dir, c.env, waitDelay
	if c.alone {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if c.in != "" {
		cmd.Stdin = strings.NewReader(c.in)
	}
	limit := c.max
	if limit == 0 {
		limit = outputMax
	}
	out, errs := &capped{max: limit}, &capped{max: smallMax}
	cmd.Stdout, cmd.Stderr = out, errs
	err := cmd.Run()
	switch {
	case out.full:
		return out.String(), fmt.Errorf("git %s: %w", c.args[0], ErrTooMuch)
	case err != nil && ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		first, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		return "", fmt.Errorf("git %s: %w: %s", c.args[0], err, first)
	}
	return out.String(), nil
}

// capped keeps the beginning of what is written to it, then fails, at which git ends.
type capped struct {
	kept bytes.Buffer
	max  int
	full bool
}

func (c *capped) String() string { return c.kept.String() }

func (c *capped) Write(b []byte) (int, error) {
	n := min(len(b), c.max-c.kept.Len())
	c.kept.Write(b[:n])
	if n < len(b) {
		c.full = true
		return n, ErrTooMuch
	}
	return n, nil
}

// environ is what every run of git gets: where programs are, and no variable
// of fermata's that could hold a secret or mean another repository.
func environ() []string {
	env := []string{
		"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1", "GIT_PAGER=cat",
		// A partial clone fetches objects that it lacks, with programs that its configuration names.
		"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none",
	}
	return append(env, fromOwn("PATH", "TMPDIR")...)
}

// userEnviron is environ for a run that reads the settings of the user too.
func userEnviron() []string {
	return append(environ(), fromOwn("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")...)
}

// shadowEnviron is environ for a run that reads the settings of a shadow alone.
func shadowEnviron(dir string) []string {
	return append(environ(), "GIT_DIR="+dir, "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1")
}

// fromOwn returns variables of our own environment, as far as they are set.
func fromOwn(names ...string) []string {
	var env []string
	for _, name := range names {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
