package sandbox

import (
	"fmt"
	"strings"
)

// The parts of a Seatbelt profile. The last rule that matches decides. Everything
// is closed but what programs cannot do without; above all most services of the
// system, since some of them start programs for whoever asks.
const (
	seatbeltBase = `(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read*)
(allow file-write-data file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom") (literal "/dev/tty"))
(allow pseudo-tty)
(allow file-read* file-write-data file-ioctl (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))
(allow ipc-posix-sem)
(allow user-preference-read)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.cfprefsd.agent")
  (global-name "com.apple.cfprefsd.daemon")
  (global-name "com.apple.bsd.dirhelper"))
`
	seatbeltSharedMemory = "(allow ipc-posix-shm)\n"
	seatbeltNetwork      = `(allow network*)
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.networkd")
  (global-name "com.apple.mDNSResponder")
  (global-name "com.apple.dnssd.service")
  (global-name "com.apple.trustd")
  (global-name "com.apple.trustd.agent")
  (global-name "com.apple.SecurityServer"))
`
)

// seatbelt writes the plan as a profile and the parameters that it refers to.
// File names are parameters, so that nothing in them can end a rule.
func (p *plan) seatbelt() (profile string, parameters []string) {
	var text strings.Builder
	text.WriteString(seatbeltBase)
	define := func(name path) string {
		key := fmt.Sprintf("P%d", len(parameters)/2)
		parameters = append(parameters, "-D", key+"="+string(name))
		return fmt.Sprintf("(subpath (param %q))", key)
	}
	for _, root := range p.Roots {
		fmt.Fprintf(&text, "(allow file-write* %s)\n", define(root))
	}
	for _, root := range p.Own {
		fmt.Fprintf(&text, "(allow network-bind network-outbound %s)\n", define(root))
	}
	for _, name := range p.Protected {
		fmt.Fprintf(&text, "(deny file-write* %s)\n", define(name))
	}
	for _, root := range p.Roots {
		if p.insideProtected(root) {
			fmt.Fprintf(&text, "(allow file-write* %s)\n", define(root))
		}
	}
	if p.Shm {
		text.WriteString(seatbeltSharedMemory)
	}
	if p.Network {
		text.WriteString(seatbeltNetwork)
		for _, port := range p.Ports {
			fmt.Fprintf(&text, "(deny network-outbound (remote ip \"*:%d\"))\n", port)
		}
	}
	for _, name := range p.Secret {
		place := define(name)
		fmt.Fprintf(&text, "(deny file-read* file-write* %s)\n(deny network-outbound %s)\n", place, place)
	}
	return text.String(), parameters
}

// insideProtected reports whether a root lies in a protected path.
func (p *plan) insideProtected(root path) bool {
	for _, name := range p.Protected {
		if within(string(root), string(name)) {
			return true
		}
	}
	return false
}
