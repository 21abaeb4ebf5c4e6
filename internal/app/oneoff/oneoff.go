// Package oneoff runs a command outside of any conversation, for a client that wants its result and nothing else.
package oneoff

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/proc"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Command is one that is run outside of any conversation.
type Command struct {
	Argv    []string
	Dir     string             // empty: where we work
	Env     map[string]*string // changes of the environment; nil unsets a variable
	Timeout time.Duration      // 0: that of the configuration
	Sandbox *p.SandboxPolicy   // nil: that of the configuration
}

// A Result is how a command ended.
type Result struct {
	ExitCode int    `json:"exitCode"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
}

// Run runs a command to its end, as spec says. The environment of spec is changed here, after a sandbox was made: a TMPDIR of
// the client's must open nothing.
func Run(ctx context.Context, spawner *proc.Spawner, spec proc.Spec, command Command) (Result, error) {
	var err error
	if spec.Env, err = changeEnv(spec.Env, command.Env); err != nil {
		return Result{}, err
	}
	var out [2]capped
	res := spawner.Run(ctx, spec, func(stream proc.Stream, b []byte) { out[stream].add(b) })
	if res.Err != nil {
		return Result{}, fmt.Errorf("run %s: %w", command.Argv[0], res.Err)
	}
	return Result{ExitCode: res.ExitCode, Stdout: out[proc.Stdout].String(), Stderr: out[proc.Stderr].String() + unfinished(res, spec.Timeout)}, nil
}

// changeEnv returns an environment with some variables set, and those without a value unset.
func changeEnv(env []string, changes map[string]*string) ([]string, error) {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, changed := changes[name]
		return changed
	})
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, fmt.Errorf("env: %q cannot be the name of a variable", name)
		}
		value := changes[name]
		if value == nil {
			continue
		}
		if strings.Contains(*value, "\x00") {
			return nil, fmt.Errorf("env: the value of %s has a NUL byte", name)
		}
		env = append(env, name+"="+*value)
	}
	return env, nil
}

// unfinished says, as a shell would, why a command did not end by itself: there is no other place
// for it in the answer.
func unfinished(res proc.Result, timeout time.Duration) string {
	switch {
	case res.TimedOut:
		return fmt.Sprintf("timed out after %v\n", timeout)
	case res.Signal != "":
		return "killed by " + res.Signal + "\n"
	}
	return ""
}

// capped keeps the beginning of what is printed, and says how much more there was.
type capped struct {
	kept bytes.Buffer
	more int
}

// MaxOutput is how many bytes of what a command prints are kept, of either stream.
const MaxOutput = 10 << 20

func (c *capped) add(b []byte) {
	n := min(len(b), MaxOutput-c.kept.Len())
	c.kept.Write(b[:n])
	c.more += len(b) - n
}

func (c *capped) String() string {
	text := strings.ToValidUTF8(c.kept.String(), "\uFFFD")
	if c.more > 0 {
		text += fmt.Sprintf("\n… %d more bytes", c.more)
	}
	return text
}
