package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A part is a module that is inside at least one of the programs.
type part struct {
	Path    string // of the module
	Version string
	Dir     string // where its files are
	Text    string // of its licence and notices
	Licence string // its name on the list of SPDX
}

// readParts reads which modules are inside the programs, sorted, and their licences.
func (r *release) readParts(ctx context.Context) ([]part, error) {
	found := map[string]part{}
	for _, t := range r.targets {
		info, err := buildinfo.ReadFile(r.binary(t))
		if err != nil {
			return nil, err
		}
		for _, m := range info.Deps {
			found[m.Path] = part{Path: m.Path, Version: m.Version}
		}
	}
	list := []part{}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		list = append(list, found[path])
	}
	if err := r.findModules(ctx, list); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, err
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	list = append(list, part{Path: "std", Version: strings.TrimPrefix(version, "go"), Dir: root})
	for i := range list {
		if err := list[i].readLicence(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// findModules sets the directories of modules. They are named with their versions, so that neither go.mod nor go.sum changes.
func (r *release) findModules(ctx context.Context, list []part) error {
	if len(list) == 0 {
		return nil
	}

	args := []string{"mod", "download", "-json"}
	for _, p := range list {
		args = append(args, p.Path+"@"+p.Version)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go mod download: %w", err)
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); err != nil {
			return err
		}
		dirs[m.Path] = m.Dir
	}
	for i := range list {
		list[i].Dir = dirs[list[i].Path]
	}
	return nil
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// readLicence reads the licence of a part, and the files that must go with it.
func (p *part) readLicence() error {
	names, err := os.ReadDir(p.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Path, err)
	}
	var texts []string
	for _, n := range names {
		if n.IsDir() || !licenceFile.MatchString(n.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.Dir, n.Name()))
		if err != nil {
			return err
		}
		texts = append(texts, strings.TrimSpace(string(text)))
		if name := licenceName(string(text)); name != "" {
			p.Licence = name
		}
	}
	if p.Licence == "" {
		return fmt.Errorf("%s %s has no licence that is known: look at %s, and add it to licenceMarks", p.Path, p.Version, p.Dir)
	}
	p.Text = strings.Join(texts, "\n\n")
	return nil
}

// licenceMarks are sentences by which a licence is known. The first that is found counts.
var licenceMarks = []struct{ name, mark string }{
	{"Apache-2.0", "Apache License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"BSD-3-Clause", "Neither the name of"},
	{"BSD-3-Clause", "may be used to endorse or promote products"},
	{"BSD-2-Clause", "Redistributions in binary form must reproduce"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software"},
	{"ISC", "Permission to use, copy, modify, and distribute this software"},
	{"MIT", "Permission is hereby granted, free of charge"},
}

func licenceName(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	text = strings.ReplaceAll(text, "Apache License, Version", "Apache License Version")
	text = strings.ReplaceAll(text, "Mozilla Public License, version", "Mozilla Public License Version")
	for _, l := range licenceMarks {
		if strings.Contains(text, l.mark) {
			return l.name
		}
	}
	return ""
}

// findParts finds what is inside, for the licences and for the list.
func (r *release) findParts(ctx context.Context) (err error) {
	r.parts, err = r.readParts(ctx)
	return err
}

// writeLicences writes the licences of everything inside, as they ask for.
func (r *release) writeLicences(context.Context) error {
	var b strings.Builder
	b.WriteString("fermata is under the Apache License 2.0 (see LICENSE). It contains:\n\n")
	for _, p := range r.parts {
		fmt.Fprintf(&b, "%s %s (%s)\n", p.Path, p.Version, p.Licence)
	}
	for _, p := range r.parts {
		fmt.Fprintf(&b, "\n%s\n%s %s\n\n%s\n", strings.Repeat("-", 80), p.Path, p.Version, p.Text)
	}
	return os.WriteFile(filepath.Join(r.work, "LICENSES.txt"), []byte(b.String()), 0o644)
}

// writeParts writes what is inside in the form of CycloneDX, which scanners read.
func (r *release) writeParts(context.Context) error {
	type object = map[string]any
	components := []object{}
	for _, p := range r.parts {
		components = append(components, object{
			"type": "library", "name": p.Path, "version": p.Version, "bom-ref": "pkg:golang/" + p.Path + "@" + p.Version,
			"purl":     "pkg:golang/" + p.Path + "@" + p.Version,
			"licenses": []object{{"license": object{"id": p.Licence}}},
		})
	}
	self := "pkg:golang/github.com/fermata-agent/fermata@" + r.version
	sum := sha256.Sum256([]byte(self)) // the same for each build of a version
	id := hex.EncodeToString(sum[:16])
	text, err := json.MarshalIndent(object{
		"$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"serialNumber": fmt.Sprintf("urn:uuid:%s-%s-5%s-8%s-%s", id[:8], id[8:12], id[13:16], id[17:20], id[20:32]),
		"metadata": object{
			"timestamp": r.time.Format("2006-01-02T15:04:05Z"),
			"component": object{"type": "application", "name": "fermata", "version": r.version, "bom-ref": self, "purl": self},
		},
		"components": components,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, fmt.Sprintf("fermata_%s_sbom.json", r.number())), append(text, '\n'), 0o644)
}
