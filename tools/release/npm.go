package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const npmScope = "@fermata-agent"

// npmNames are the targets by the names that npm has for a system and a processor.
var npmNames = map[target]target{
	{"linux", "amd64"}:   {"linux", "x64"},
	{"linux", "arm64"}:   {"linux", "arm64"},
	{"darwin", "amd64"}:  {"darwin", "x64"},
	{"darwin", "arm64"}:  {"darwin", "arm64"},
	{"freebsd", "amd64"}: {"freebsd", "x64"},
	{"freebsd", "arm64"}: {"freebsd", "arm64"},
}

//go:embed launcher.js
var launcher []byte

// writeNPM writes a package for each target, and one that depends on all of them: npm
// installs the one that is for its machine, and the launcher finds it.
func (r *release) writeNPM(context.Context) error {
	notices, err := r.npmNotices()
	if err != nil {
		return err
	}
	optional := map[string]string{}
	for _, t := range r.targets {
		n := npmNames[t]
		name := fmt.Sprintf("%s/fermata-%s-%s", npmScope, n.os, n.arch)
		optional[name] = r.number()
		program, err := r.readEntry("package/bin/fermata", r.binary(t), 0o755)
		if err != nil {
			return err
		}
		manifest := r.manifest(name)
		manifest["os"], manifest["cpu"] = []string{n.os}, []string{n.arch}
		if err := r.writeNPMPackage(name, manifest, append([]entry{program}, notices...)); err != nil {
			return err
		}
	}
	manifest := r.manifest(npmScope + "/fermata")
	manifest["bin"] = map[string]string{"fermata": "bin/fermata.js"}
	manifest["engines"] = map[string]string{"node": ">=18"}
	manifest["optionalDependencies"] = optional
	return r.writeNPMPackage(npmScope+"/fermata", manifest, append([]entry{{"package/bin/fermata.js", launcher, 0o755}}, notices...))
}

// npmNotices are the files that each package of npm has.
func (r *release) npmNotices() ([]entry, error) {
	var entries []entry
	for name, path := range map[string]string{"LICENSE": filepath.Join(r.root, "LICENSE"), "LICENSES.txt": filepath.Join(r.work, "LICENSES.txt"), "README.md": filepath.Join(r.root, "README.md")} {
		e, err := r.readEntry("package/"+name, path, 0o644)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	sortEntries(entries)
	return entries, nil
}

func (r *release) manifest(name string) map[string]any {
	return map[string]any{
		"name": name, "version": r.number(), "description": description, "license": licence, "homepage": homepage,
		"repository": map[string]string{"type": "git", "url": "git+" + homepage + ".git"},
	}
}

func (r *release) writeNPMPackage(name string, manifest map[string]any, entries []entry) error {
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	entries = append([]entry{{"package/package.json", append(text, '\n'), 0o644}}, entries...)
	base := strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-")
	return r.writeTarball(fmt.Sprintf("%s-%s.tgz", base, r.number()), entries)
}

//go:embed install.sh
var installer string

// writeInstaller writes the script that installs this version.
func (r *release) writeInstaller(context.Context) error {
	text := strings.ReplaceAll(installer, "@VERSION@", r.version)
	return os.WriteFile(filepath.Join(r.out, "install.sh"), []byte(text), 0o755)
}
