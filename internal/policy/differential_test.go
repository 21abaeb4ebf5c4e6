package policy

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// recorder stands in for every program: it notes its name and arguments.
const recorder = `#!/bin/sh
line="<${0##*/}>"
for a; do line="$line<$a>"; done
printf '%s\0' "$line" >>"$RECORD"
`

// pieces are what random scripts are put together from. Nothing in them does
// harm, whatever they make together.
var pieces = []string{
	"ls", "ls", "cat", "evil", "evil", " ", " ", " ", " ", "\n", "\t", "\\\n", "\\", "'", "\"", "#", " # ", "$", "$(", ")", "(", "`",
	"{", "}", ",", "&", "&&", "||", "|", ";", ";;", "<", ">", "=", "!", "~/", "*", "?", "[", "]", "^", "-", "x", "a b", "é", "\u00a0",
	"$'", "\\n", "\\x41", "@(", "\r", "\x01", "do", "done", "if", "then", "fi", "%", "1", "<<", "EOF", "\\$", "\\\"", "\\'", "\\#", "é-x",
}

// A script that is taken for safe must make the real shells run exactly what
// the analysis saw. What the parser understands differently from a shell shows
// up here: a comment that ends in a backslash did.
func TestShellsRunWhatTheAnalysisSaw(t *testing.T) {
	seed, n := uint64(1), longtest.Default(60, 30)
	if s := os.Getenv("POLICY_SEED"); s != "" { // for a longer search
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed, n = v, 3000
	}
	for _, shell := range []string{"bash", "sh", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			bin, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("no %s here", shell)
			}
			run := newShellRun(t, bin)
			rng := rand.New(rand.NewPCG(seed, 0))
			for range n {
				script, want := randomSafe(rng, shell)
				run.check(t, script, want)
			}
		})
	}
}

// randomSafe returns a random script that is taken for safe, with the commands
// that the analysis sees in it.
func randomSafe(rng *rand.Rand, shell string) (string, []string) {
	for {
		var b strings.Builder
		b.WriteString("ls")
		special := 0
		for range 3 + rng.IntN(12) {
			p := pieces[rng.IntN(len(pieces))]
			if strings.Trim(p, "lscatevix1b ") != "" {
				special++
			}
			b.WriteString(p)
		}
		if special < 2 || !Safe([]string{shell, "-c", b.String()}) {
			continue
		}
		found, _ := simples(shell, b.String(), nil)
		var want []string
		for _, s := range found {
			line := ""
			for _, w := range s.words {
				line += "<" + w.text + ">"
			}
			want = append(want, line)
		}
		return b.String(), want
	}
}

type shellRun struct{ bin, dir, tools, record string }

func newShellRun(t *testing.T, bin string) shellRun {
	t.Helper()
	base := t.TempDir()
	r := shellRun{bin, filepath.Join(base, "dir"), filepath.Join(base, "bin"), filepath.Join(base, "record")}
	for _, d := range []string{r.dir, r.tools} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"ls", "cat", "evil"} {
		if err := os.WriteFile(filepath.Join(r.tools, name), []byte(recorder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r shellRun) check(t *testing.T, script string, want []string) {
	t.Helper()
	if err := os.WriteFile(r.record, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(r.bin, "-c", script)
	cmd.Dir = r.dir
	cmd.Env = []string{"PATH=" + r.tools, "RECORD=" + r.record, "HOME=~", "LC_ALL=C.UTF-8"}
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%q: the shell says %v: %s", script, err, said)
	}
	b, err := os.ReadFile(r.record)
	if err != nil {
		t.Fatal(err)
	}
	ran := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
	for _, line := range ran {
		if !slices.Contains(want, line) {
			t.Errorf("%q: the shell runs %s, the analysis sees %v", script, line, want)
		}
	}
	if left, err := os.ReadDir(r.dir); err != nil || len(left) > 0 {
		t.Errorf("%q leaves %v behind (%v)", script, fmt.Sprint(left), err)
	}
}
