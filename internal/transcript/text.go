package transcript

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/humanize"
	p "github.com/fermata-agent/fermata/protocol"
)

// verbs say how a turn ended.
var verbs = map[p.EndReason]string{
	p.Interrupted: "interrupted",
	p.Replaced:    "replaced",
	p.Failed:      "failed",
	p.Crashed:     "crashed",
}

// endLine is the one line that tells how a turn ended, such as
// "interrupted after 12 s · 1 command, 3 processes killed · 2 files changed · reply kept".
func endLine(b *p.TurnEnded, s stats, files int) string {
	parts := []string{verbs[b.Reason] + " after " + seconds(b.Elapsed)}
	if b.Error != nil {
		parts[0] += ": " + b.Error.Message
		if b.Error.Hint != "" {
			parts = append(parts, b.Error.Hint)
		}
	}
	var killed []string
	if s.cut > 0 {
		killed = append(killed, humanize.Count(s.cut, "command"))
	}
	if s.killed > 0 {
		killed = append(killed, humanize.Count(s.killed, "process"))
	}
	if len(killed) > 0 {
		parts = append(parts, strings.Join(killed, ", ")+" killed")
	}
	if files > 0 {
		parts = append(parts, humanize.Count(files, "file")+" changed")
	}
	if s.kept {
		parts = append(parts, "reply kept")
	}
	return strings.Join(parts, " · ")
}

func seconds(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 95*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// Elapsed says how long an item took, or has taken until now if it is open.
func (it *Item) Elapsed(now time.Time) string {
	end := it.End
	if end.IsZero() {
		end = now
	}
	return seconds(max(0, end.Sub(it.Start)))
}

// Printed is what a call has to show for itself: what its command printed, or else
// what it answered. A command that could not be run printed nothing; the answer says why.
func Printed(b *p.ToolOutput) string {
	c := b.Command
	if c == nil || b.Failed && c.ExitCode < 0 && c.Signal == "" && !c.TimedOut && c.Output == "" {
		return b.Output
	}
	return c.Output
}

// Failure says how a call failed, as short as can be.
func (it *Item) Failure() string {
	switch {
	case it.TimedOut:
		return "timed out"
	case it.Signal != "":
		return "killed by " + it.Signal
	case len(it.Command) > 0 && it.ExitCode > 0:
		return fmt.Sprintf("exit code %d", it.ExitCode)
	}
	return "failed"
}

// CommandLine is the command as one would type it.
func (it *Item) CommandLine() string { return CommandLine(it.Command) }

// CommandLine is a command as one would type it. The name of a shell that runs a
// script is left out; of any other program with a -c it matters, and people decide by
// what they are shown.
func CommandLine(argv []string) string {
	if len(argv) == 3 && isShell(argv[0]) && strings.HasPrefix(argv[1], "-") && strings.HasSuffix(argv[1], "c") {
		return argv[2] // bash -lc SCRIPT
	}
	return Quote(argv)
}

// isShell reports whether a program is a shell of the system.
func isShell(program string) bool {
	dir, name := path.Split(program)
	return slices.Contains([]string{"", "/bin/", "/usr/bin/", "/usr/local/bin/"}, dir) &&
		slices.Contains([]string{"bash", "sh", "zsh", "dash", "ksh"}, name)
}

// Quote is a command in one string, that a shell would take apart again.
func Quote(argv []string) string {
	quoted := make([]string, len(argv))
	for i, a := range argv {
		quoted[i] = quote(a)
	}
	return strings.Join(quoted, " ")
}

func quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,@%+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
