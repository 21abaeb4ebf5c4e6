package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// An entry is a file of an archive.
type entry struct {
	name string
	data []byte
	mode int64
}

func (r *release) readEntry(name, path string, mode int64) (entry, error) {
	data, err := os.ReadFile(path)
	return entry{name, data, mode}, err
}

// writeTarball writes entries as they are given, all with the release's time and no owner.
func (r *release) writeTarball(name string, entries []entry) error {
	var b bytes.Buffer
	zip, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(zip)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: r.time, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(e.data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, name), b.Bytes(), 0o644)
}

func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

func (r *release) archiveName(t target) string {
	return fmt.Sprintf("fermata_%s_%s_%s.tar.gz", r.number(), t.os, t.arch)
}

// writeArchives writes an archive for each target: the program and what goes with it.
func (r *release) writeArchives(context.Context) error {
	files, err := r.extras()
	if err != nil {
		return err
	}
	for _, t := range r.targets {
		program, err := r.readEntry("fermata", r.binary(t), 0o755)
		if err != nil {
			return err
		}
		entries := []entry{program}
		for _, f := range files {
			e, err := r.readEntry(f.name, f.path, 0o644)
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		if err := r.writeTarball(r.archiveName(t), entries); err != nil {
			return err
		}
	}
	return nil
}

func checksum(name string) (string, error) {
	data, err := os.ReadFile(name)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), err
}

// writeChecksums writes the checksums of everything, and signs them if there is a key.
func (r *release) writeChecksums(context.Context) error {
	names, err := os.ReadDir(r.out) // sorted
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, n := range names {
		sum, err := checksum(filepath.Join(r.out, n.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s  %s\n", sum, n.Name())
	}
	if err := os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(list.String()), 0o644); err != nil || r.key == "" {
		return err
	}
	key, err := r.signingKey()
	if err != nil {
		return err
	}
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(key, []byte(list.String())))
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS.sig"), []byte(signature+"\n"), 0o644)
}
