package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk" // registers its form
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const (
	homepage    = "https://github.com/fermata-agent/fermata"
	maintainer  = "fermata <fermata@users.noreply.github.com>"
	description = "A coding agent that can be interrupted at any time and resumed with nothing lost"
	licence     = "Apache-2.0"
)

// writePackages writes a deb, an rpm and an apk for each processor that Linux is built for.
func (r *release) writePackages(context.Context) error {
	extras, err := r.extras()
	if err != nil {
		return err
	}
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		for _, form := range []string{"deb", "rpm", "apk"} {
			if err := r.writePackage(form, t, extras); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *release) writePackage(form string, t target, extras []file) error {
	packager, err := nfpm.Get(form)
	if err != nil {
		return err
	}
	contents := files.Contents{r.content(r.binary(t), "/usr/bin/fermata", 0o755)}
	for _, f := range extras {
		contents = append(contents, r.content(f.path, f.system, 0o644))
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "fermata", Arch: t.arch, Platform: "linux", Version: r.version, Release: "1",
		Section: "devel", Priority: "optional", Maintainer: maintainer, Description: description, Vendor: "fermata", Homepage: homepage, License: licence,
		MTime: r.time, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Contents: contents, Recommends: []string{"git"}, Umask: 0o022,
			RPM: nfpm.RPM{BuildHost: "localhost", Summary: description, Compression: "gzip:9"},
		},
	})
	if form == "apk" {
		info.Recommends = nil // it knows no such thing
	}
	if err := nfpm.PrepareForPackager(info, form); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	if err := packager.Package(info, out); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

func (r *release) content(from, to string, mode os.FileMode) *files.Content {
	return &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.time}}
}
