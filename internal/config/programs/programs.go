// Package programs finds what a command line executes, so that confined commands can be kept from it.
package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// scripts are the extensions of files that an interpreter runs.
var scripts = []string{".bash", ".cjs", ".jar", ".js", ".lua", ".mjs", ".mts", ".php", ".pl", ".ps1", ".py", ".rb", ".sh", ".ts", ".zsh"}

// Of returns the program of a command line, and the scripts and programs among its arguments. What does
// not exist is left out. Relative names belong to dir, or to nothing if that is empty.
func Of(argv []string, dir string) []string {
	if len(argv) == 0 {
		return nil
	}
	var list []string
	add := func(name string, always bool) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		info, err := os.Stat(name)
		if err != nil || !filepath.IsAbs(name) || !info.Mode().IsRegular() {
			return
		}
		if always || info.Mode()&0o111 != 0 || slices.Contains(scripts, strings.ToLower(filepath.Ext(name))) {
			list = append(list, name)
		}
	}
	if strings.Contains(argv[0], "/") {
		add(argv[0], true)
	} else if program, err := exec.LookPath(argv[0]); err == nil {
		add(program, true)
	}
	for _, arg := range argv[1:] {
		_, value, _ := strings.Cut(arg, "=")
		for _, name := range []string{arg, value} {
			if name != "" {
				add(name, false)
			}
		}
	}
	return list
}
