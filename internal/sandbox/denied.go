package sandbox

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/fermata-agent/fermata/internal/proc"
)

// Attempt is a confined command that has ended.
type Attempt struct {
	Dir    string // its working directory
	Result proc.Result
	Output string // what it wrote
}

// Denied reports whether the command failed because it was confined, and at what.
//
// The kernel does not tell us, so the command's own words are evidence; its exit
// code alone never is. It must have failed by itself, and it must have said that
// something was refused, in English: a read-only file system, a permission, an
// operation, the network. If the same line names a file, then that must be a file
// which the confinement refuses and the user himself could have written:
// what anybody would be refused is no denial of ours. A line that names none
// counts if it speaks of a read-only file system (which we make, and few others
// do) or of something that we forbid to everybody, such as sockets.
//
// It is a guess in both directions: a command that hides its errors is not
// found, and one that prints such words for another reason may be.
func (c *Confinement) Denied(a Attempt) (what string, denied bool) {
	if c == nil || a.Result.Err != nil || a.Result.Stopped || a.Result.TimedOut {
		return "", false
	}
	if a.Result.Signal == "SIGSYS" {
		return "a program of another architecture", true
	}
	if a.Result.ExitCode == 0 || a.Result.Signal != "" {
		return "", false
	}

	for line := range strings.Lines(a.Output) {
		if what := c.deniedIn(strings.TrimSpace(line), a.Dir); what != "" {
			return what, true
		}
	}
	return "", false
}

// words are what programs say. They are compiled when first needed: most
// processes that link this package are shims.
type words struct {
	readOnly, refused, forbidden, network *regexp.Regexp

	shell, quoted, separator *regexp.Regexp
}

var english = sync.OnceValue(func() words {
	return words{
		readOnly:  regexp.MustCompile(`(?i)read-only file ?system|\bEROFS\b`),
		refused:   regexp.MustCompile(`(?i)permission denied|operation not permitted|\bEACCES\b|\bEPERM\b|device or resource busy|cross-device link`),
		forbidden: regexp.MustCompile(`(?i)\b(socket|connect|bind|listen|ptrace|unshare|namespace|clone|mount|umount|io_uring|bpf|kill)\b`),
		network:   regexp.MustCompile(`(?i)could not resolve|name resolution|name or service not known|network is unreachable|dial (tcp|udp)|no such host|EAI_AGAIN|getaddrinfo`),
		shell:     regexp.MustCompile(`^[^\s:]+: (?:line )?\d+: (?:cannot (?:create|open) )?([^:]+): `),
		quoted:    regexp.MustCompile("['\"`‘“]([^'\"`’”]+)['\"`’”]"),
		separator: regexp.MustCompile(`[\s:,;()=<>\[\]]+`),
	}
})

// deniedIn judges one line.
func (c *Confinement) deniedIn(line, dir string) string {
	says := english()
	readOnly, refused := says.readOnly.MatchString(line), says.refused.MatchString(line)
	if !c.plan.Network && says.network.MatchString(line) {
		return "the network"
	}
	if !readOnly && !refused {
		return ""
	}

	named := false
	for _, name := range namesIn(line) {
		name = from(dir, name)
		if !exists(name) && !exists(filepath.Dir(name)) {
			continue // no file after all
		}
		named = true
		if c.refuses(name) && couldWrite(name) {
			return "writing " + name
		}
	}
	switch {
	case named:
		return ""
	case readOnly && c.plan.Mounts != mountsNone:
		return "writing"
	case refused && says.forbidden.MatchString(line):
		return strings.ToLower(says.forbidden.FindString(line))
	}
	return ""
}

// refuses reports whether the confinement refuses to write name.
func (c *Confinement) refuses(name string) bool {
	real := resolved(name)
	if real == "" { // it may be new
		real = filepath.Join(resolved(filepath.Dir(name)), filepath.Base(name))
	}
	holds := func(list []path) bool {
		return slices.ContainsFunc(list, func(p path) bool { return within(real, string(p)) })
	}
	return !holds(c.plan.Roots) || holds(c.plan.Protected)
}

// namesIn returns what may be file names in a line of a program: what a shell
// could not open, what is in quotes, and words with a slash in them.
func namesIn(line string) []string {
	if m := english().shell.FindStringSubmatch(line); m != nil { // the shell says its own name first
		return []string{m[1]}
	}
	var names []string
	for _, m := range english().quoted.FindAllStringSubmatch(line, -1) {
		names = append(names, m[1])
	}
	for _, word := range english().separator.Split(line, -1) {
		word = strings.TrimRight(strings.Trim(word, "'\"`‘’“”"), ".")
		if strings.Contains(word, "/") && !slices.Contains(names, word) {
			names = append(names, word)
		}
	}
	return names
}
