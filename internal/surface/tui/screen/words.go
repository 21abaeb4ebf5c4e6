package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/safetext"
	p "github.com/fermata-agent/fermata/protocol"
)

// Asks says when a person is asked.
func Asks(a p.ApprovalPolicy) string {
	switch a {
	case p.ApprovalNever:
		return "never asks"
	case p.ApprovalOnRequest:
		return "asks when needed"
	case p.ApprovalOnFailure:
		return "asks on failure"
	case p.ApprovalUntrusted:
		return "asks for unknown commands"
	}
	return string(a)
}

// May says what commands may touch.
func May(s p.Settings) string {
	switch s.Sandbox.Mode {
	case p.SandboxReadOnly:
		return "read files"
	case p.SandboxWorkspaceWrite:
		return "write in this directory"
	case p.SandboxFullAccess:
		return "do anything: there is no sandbox"
	}
	return string(s.Sandbox.Mode)
}

// A Fact is a part of the status line. Where there is little room, those of
// the lowest rank are left out.
type Fact struct {
	Text string // what is shown
	Rank int    // the lowest goes first
}

// Fit joins as many facts as fit, in their order.
func Fit(list []Fact, width int) string {
	for len(list) > 0 {
		var words []string
		least := 0
		for i, f := range list {
			words = append(words, f.Text)
			if f.Rank < list[least].Rank {
				least = i
			}
		}
		line := strings.Join(words, " · ")
		if safetext.Width(line) <= width {
			return line
		}
		list = slices.Delete(slices.Clone(list), least, least+1)
	}
	return ""
}

// Tokens is a number of tokens, rounded.
func Tokens(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%d M", n/1_000_000)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%d k", n/1000)
	case n >= 1000:
		return fmt.Sprintf("%.1f k", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

// Clock is a time that runs, without parts that flicker.
func Clock(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// Ago says when something was.
func Ago(now, at time.Time) string {
	d := now.Sub(at)
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	case d < 7*24*time.Hour:
		return fmt.Sprintf("%d d ago", int(d.Hours()/24))
	}
	return at.Local().Format(time.DateOnly)
}

// InHome is a directory with ~ for the home directory, which may be empty.
func InHome(dir, home string) string {
	if home != "" && (dir == home || strings.HasPrefix(dir, home+"/")) {
		return "~" + strings.TrimPrefix(dir, home)
	}
	return dir
}

// Place is the end of a directory, and the branch if there is one.
func Place(dir, branch string) string {
	if r := []rune(dir); len(r) > 30 { // the end says more
		dir = "…" + string(r[len(r)-29:])
	}
	if branch != "" && dir != "" {
		dir += " (" + branch + ")"
	}
	return dir
}
