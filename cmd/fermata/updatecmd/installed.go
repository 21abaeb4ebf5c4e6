package updatecmd

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

const (
	module   = "github.com/fermata-agent/fermata"
	releases = "https://" + module + "/releases"
)

// An installation is how a copy of the program came to this machine.
type installation struct {
	by     string // in words, such as "npm"
	update string // what to run for a newer one; empty if nothing is known
	prefix string // of one that the install script made; else empty
	from   string // where the install script downloaded from
}

// A machine is what tells how a copy was installed.
type machine struct {
	program string // the program's file, links resolved
	root    string // of the file system; "/" but in tests
	module  string // the version of the module, if go install built the program
}

// thisMachine describes the running program.
func thisMachine() (machine, error) {
	name, err := os.Executable()
	if err != nil {
		return machine{}, err
	}
	m := machine{root: "/"}
	if m.program, err = filepath.EvalSymlinks(name); err != nil {
		return m, err
	}
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") && !slices.ContainsFunc(info.Settings, isVCS) {
		m.module = info.Main.Version // a build in a checkout has the settings of its repository
	}
	return m, nil
}

func isVCS(s debug.BuildSetting) bool { return s.Key == "vcs" }

// ways are the ways to install, the surest mark first.
var ways = []func(machine) (installation, bool){byScript, byNPM, byHomebrew, byDebian, byAlpine, byRPM, byGo}

// installed finds out how a copy came to this machine.
func (m machine) installed() installation {
	for _, way := range ways {
		if in, ok := way(m); ok {
			return in
		}
	}
	return installation{by: "hand", update: "git pull && go build ./cmd/fermata"}
}

// byScript knows the file that the install script leaves.
func byScript(m machine) (installation, bool) {
	prefix := filepath.Dir(filepath.Dir(m.program))
	text, err := os.ReadFile(filepath.Join(prefix, "share", "fermata", "installed-by-script"))
	if err != nil || m.program != filepath.Join(prefix, "bin", "fermata") {
		return installation{}, false
	}
	return installation{
		by: "the install script", prefix: prefix, from: strings.TrimSpace(string(text)),
		update: "curl -fsSL " + releases + "/latest/download/install.sh | PREFIX='" + prefix + "' sh",
	}, true
}

func byNPM(m machine) (installation, bool) {
	ok := strings.Contains(m.program, "/node_modules/@fermata-agent/")
	return installation{by: "npm", update: "npm install --global @fermata-agent/fermata@latest"}, ok
}

func byHomebrew(m machine) (installation, bool) {
	return installation{by: "Homebrew", update: "brew upgrade fermata"}, strings.Contains(m.program, "/Cellar/fermata/")
}

func byDebian(m machine) (installation, bool) {
	return installation{by: "a Debian package", update: "sudo apt install ./FILE, with the .deb from " + releases + "/latest"},
		m.lists("var/lib/dpkg/info/fermata.list")
}

func byAlpine(m machine) (installation, bool) {
	text, err := os.ReadFile(filepath.Join(m.root, "lib/apk/db/installed"))
	ok := err == nil && strings.HasPrefix(m.program, "/usr/bin/") && strings.Contains("\n"+string(text), "\nP:fermata\n")
	return installation{by: "an Alpine package", update: "apk add --allow-untrusted ./FILE, with the .apk from " + releases + "/latest"}, ok
}

// byRPM goes by the files that the package has beside the program: the database can be read by rpm only.
func byRPM(m machine) (installation, bool) {
	ok := m.program == "/usr/bin/fermata" && m.has("usr/share/doc/fermata/LICENSES.txt") &&
		(m.has("usr/lib/sysimage/rpm") || m.has("var/lib/rpm")) // as newer and older systems have it
	return installation{by: "an RPM package", update: "sudo dnf install ./FILE, with the .rpm from " + releases + "/latest"}, ok
}

func byGo(m machine) (installation, bool) {
	return installation{by: "go install", update: "go install " + module + "/cmd/fermata@latest"}, m.module != ""
}

func (m machine) has(name string) bool {
	_, err := os.Stat(filepath.Join(m.root, name))
	return err == nil
}

// lists reports whether a list of a package's files names the program.
func (m machine) lists(name string) bool {
	text, err := os.ReadFile(filepath.Join(m.root, name))
	return err == nil && slices.Contains(strings.Split(string(text), "\n"), m.program)
}
