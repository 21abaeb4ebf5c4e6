package cli

import "runtime/debug"

// release is set when a release is built: -ldflags "-X github.com/fermata-agent/fermata/cmd/fermata/cli.release=1.2.3".
var release = ""

// Version is the version of this program.
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// updateKey is set when a release is built: the public key that signs releases, in base64.
var updateKey = ""

// UpdateKey is the public key that the checksums of newer versions are signed with, in base64. It is empty in
// a copy that was built without one, which updates nothing by itself.
func UpdateKey() string { return updateKey }
