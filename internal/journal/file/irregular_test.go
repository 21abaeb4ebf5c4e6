package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
)

// oddities put something else than a regular file at a path. Where a link leads to a file, that is the content.
var oddities = map[string]func(t *testing.T, path string, content []byte){
	"link to a file": func(t *testing.T, path string, content []byte) {
		to := filepath.Join(t.TempDir(), "elsewhere")
		must(t, os.WriteFile(to, content, 0o600))
		must(t, os.Symlink(to, path))
	},
	"relative link to a link": func(t *testing.T, path string, content []byte) {
		must(t, os.WriteFile(path+"-away", content, 0o600))
		must(t, os.Symlink(filepath.Base(path)+"-away", path+"-link"))
		must(t, os.Symlink(filepath.Base(path)+"-link", path))
	},
	"link to itself":    func(t *testing.T, path string, _ []byte) { must(t, os.Symlink(filepath.Base(path), path)) },
	"link to nothing":   func(t *testing.T, path string, _ []byte) { must(t, os.Symlink(path+"-gone", path)) },
	"link to /dev/zero": func(t *testing.T, path string, _ []byte) { must(t, os.Symlink("/dev/zero", path)) },
	"named pipe":        func(t *testing.T, path string, _ []byte) { must(t, syscall.Mkfifo(path, 0o600)) },
	"directory":         func(t *testing.T, path string, _ []byte) { must(t, os.MkdirAll(filepath.Join(path, "below"), 0o700)) },
	"socket": func(t *testing.T, path string, _ []byte) {
		t.Chdir(filepath.Dir(path)) // the path is too long for a socket
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Base(path), Net: "unix"})
		must(t, err)
		l.SetUnlinkOnClose(false)
		must(t, l.Close())
	},
}

// eachOddity runs a test for each of them, on a closed conversation with damage at its end, so that opening it needs every file
// that there can be.
func eachOddity(t *testing.T, suffix string, test func(t *testing.T, name string, s *sample)) {
	for name, put := range oddities {
		t.Run(name, func(t *testing.T) {
			s := newSample(t)
			j, err := s.Open(t.Context(), sampleID)
			must(t, err)
			must(t, j.Checkpoint(t.Context(), 5, []byte("state")))
			must(t, j.Close())
			s.replace(t, append(bytes.Clone(s.data), "torn"...))
			content, _ := os.ReadFile(s.path + suffix) // empty if there is no such file
			if err := os.Remove(s.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			put(t, s.path+suffix, content)
			test(t, name, s)
		})
	}
}

// Whatever is in the place of a file beside a journal, the conversation is opened with everything in it, is written
// to, checked and deleted. Nothing is written through a link.
func TestOddFilesBesideAJournal(t *testing.T) {
	for _, suffix := range []string{".lock", ".ckpt", ".ckpt.tmp", ".damaged", ".tmp", ".rescued1"} {
		t.Run(suffix, func(t *testing.T) {
			eachOddity(t, suffix, func(t *testing.T, name string, s *sample) {
				before, _ := os.ReadFile(s.path + "-away")
				_, recs, _ := s.open(t)
				if diff := cmp.Diff(s.recs, recs); diff != "" {
					t.Errorf("records: %s", diff)
				}
				if text, err := os.ReadFile(s.path + ".damaged"); err != nil || !bytes.Contains(text, []byte("torn")) {
					t.Errorf("set aside is %q, %v", text, err)
				}
				j, err := s.Open(t.Context(), sampleID)
				must(t, err)
				must(t, (&promise{}).add(j, "more"))
				if err := j.Checkpoint(t.Context(), 9, []byte("state")); err != nil && name != "directory" {
					t.Error(err) // a checkpoint may be lost at any time
				}
				must(t, j.Close())
				if after, _ := os.ReadFile(s.path + "-away"); !bytes.Equal(after, before) {
					t.Error("what the link leads to was changed")
				}
				_, err = s.Repair(t.Context(), sampleID)
				must(t, err)
				must(t, s.Archive(t.Context(), sampleID))
				if err := s.Delete(t.Context(), sampleID); err != nil && name != "directory" {
					t.Error(err)
				}
			})
		})
	}
}

// What is in the place of a journal and is not a file is named and not opened; it is listed, and can be deleted.
// A repair makes a file of a link to one.
func TestOddJournals(t *testing.T) {
	eachOddity(t, "", func(t *testing.T, name string, s *sample) {
		infos, err := s.List(t.Context())
		if len(infos) != 1 || infos[0].ID != sampleID || err != nil {
			t.Errorf("List = %+v, %v", infos, err)
		}
		var odd *file.NotRegularError
		if _, err := s.Open(t.Context(), sampleID); !errors.As(err, &odd) {
			t.Errorf("Open = %v", err)
		}
		if _, err := s.View(t.Context(), sampleID); !errors.As(err, &odd) {
			t.Errorf("View = %v", err)
		}
		if _, _, err := s.Owner(t.Context(), sampleID); !errors.As(err, &odd) {
			t.Errorf("Owner = %v", err)
		}
		if err := s.Archive(t.Context(), sampleID); !errors.As(err, &odd) {
			t.Errorf("Archive = %v", err)
		}
		if err := s.SetAside(t.Context(), sampleID, 1); !errors.As(err, &odd) {
			t.Errorf("SetAside = %v", err)
		}
		_, err = s.Repair(t.Context(), sampleID)
		switch {
		case name == "link to a file" || name == "relative link to a link":
			must(t, err)
			_, recs, _ := s.open(t)
			if diff := cmp.Diff(s.recs, recs); diff != "" {
				t.Errorf("records: %s", diff)
			}
		case err == nil || strings.HasPrefix(name, "link") && !strings.Contains(err.Error(), "leads to no file"):
			t.Errorf("Repair = %v", err)
		}
		if err := s.Delete(t.Context(), sampleID); err != nil && name != "directory" {
			t.Errorf("Delete = %v", err)
		}
	})
}

// A link to a journal that another process has open is not replaced by a copy, which would be another conversation soon.
func TestRepairLeavesALinkToAnOpenJournal(t *testing.T) {
	s := newSample(t)
	elsewhere := s.path + "-elsewhere"
	must(t, os.Rename(s.path, elsewhere))
	must(t, os.Symlink(elsewhere, s.path))
	f, err := file.OS{}.OpenFile(elsewhere, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	must(t, f.Lock())
	if _, err := s.Repair(t.Context(), sampleID); err == nil {
		t.Error("it was replaced")
	}
	if st, err := os.Lstat(s.path); err != nil || st.Mode().Type() != fs.ModeSymlink {
		t.Errorf("there is %v, %v", st.Mode(), err)
	}
}

// Directories that are links are read through, once; what cannot be read is named and does not hide the rest.
func TestOddDirectories(t *testing.T) {
	day := filepath.Join("conversations", "2025", "09", "24")
	for _, test := range []struct {
		name   string
		dir    string
		do     func(t *testing.T, dir string)
		listed int
		unread int
	}{
		{"day is a link", day, moveBehindLink, 1, 0},
		{"year is a link", filepath.Join("conversations", "2025"), moveBehindLink, 1, 0},
		{"conversations are a link", "conversations", moveBehindLink, 1, 0},
		{"a link to the directory above", filepath.Join(day, "up"), func(t *testing.T, dir string) { must(t, os.Symlink("..", dir)) }, 1, 0},
		{"a link to all", filepath.Join("conversations", "2024"), func(t *testing.T, dir string) { must(t, os.Symlink(".", dir)) }, 1, 0},
		{"a month that is a link to itself", filepath.Join("conversations", "2025", "10"), func(t *testing.T, dir string) { must(t, os.Symlink("10", dir)) }, 1, 1},
		{"a year that is a pipe", filepath.Join("conversations", "2024"), func(t *testing.T, dir string) { must(t, syscall.Mkfifo(dir, 0o600)) }, 1, 1},
		{"the day is a pipe", day, replaceWithPipe, 0, 1},
		{"conversations are a pipe", "conversations", replaceWithPipe, 0, 1},
		{"archived are a pipe", "archived", func(t *testing.T, dir string) { must(t, syscall.Mkfifo(dir, 0o600)) }, 1, 1},
		{"conversations are a link to nothing", "conversations", func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir))
			must(t, os.Symlink("nowhere", dir))
		}, 0, 1},
		{"conversations are a link to the directory above", "conversations", replaceWithLink(".."), 0, 1},
		{"conversations are a link to the home", "conversations", replaceWithLink("."), 0, 1},
		{"the year is a link to the home", filepath.Join("conversations", "2025"), replaceWithLink(".."), 0, 1},
		{"the year is a link to all", filepath.Join("conversations", "2025"), replaceWithLink("."), 0, 1},
		{"the month is a link to all", filepath.Join("conversations", "2025", "09"), replaceWithLink(".."), 0, 1},
		{"the day is a link to its year", day, replaceWithLink(".."), 0, 1},
		{"archived are a link to the home", "archived", replaceWithLink("."), 1, 1},
		{"a link to some directory", filepath.Join("conversations", "notes"), replaceWithLink(".."), 1, 0},
		{"the home is a link to nothing", ".", func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir))
			must(t, os.Symlink("nowhere", dir))
		}, 0, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := filepath.Join(t.TempDir(), "home")
			s := file.New(home, file.Options{})
			j, err := s.Create(t.Context(), sampleID, time.Date(2025, 9, 24, 23, 59, 1, 0, time.UTC))
			must(t, err)
			must(t, j.Close())
			test.do(t, filepath.Join(home, test.dir))
			infos, err := s.List(t.Context())
			var incomplete *journal.IncompleteError
			unread := 0
			if errors.As(err, &incomplete) {
				unread = len(incomplete.Unread)
			}
			if len(infos) != test.listed || unread != test.unread || err != nil && unread == 0 {
				t.Errorf("List = %+v, %v", infos, err)
			}
			j, err = s.Open(t.Context(), sampleID)
			if test.listed == 0 {
				if !errors.As(err, &incomplete) {
					t.Errorf("Open = %v", err)
				}
				if j, err := s.Create(t.Context(), otherID, time.Date(2025, 9, 24, 23, 59, 1, 0, time.UTC)); err == nil {
					must(t, j.Close())
					if infos, _ := s.List(t.Context()); len(infos) != 1 {
						t.Errorf("another was created, and the list is %+v", infos)
					}
				}
				return
			}
			must(t, err)
			must(t, j.Close())
		})
	}
}

// A link to a disk on which there is nothing yet is no damage.
func TestLinkToAnEmptyDisk(t *testing.T) {
	home, other := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(other, "lost+found"), 0o700))
	must(t, os.WriteFile(filepath.Join(other, ".hidden"), nil, 0o600))
	must(t, os.Symlink(other, filepath.Join(home, "conversations")))
	if infos, err := file.New(home, file.Options{}).List(t.Context()); len(infos) != 0 || err != nil {
		t.Errorf("List = %+v, %v", infos, err)
	}
}

func moveBehindLink(t *testing.T, dir string) {
	to := filepath.Join(t.TempDir(), "elsewhere")
	must(t, os.Rename(dir, to))
	must(t, os.Symlink(to, dir))
}

func replaceWithLink(to string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		must(t, os.RemoveAll(dir))
		must(t, os.Symlink(to, dir))
	}
}

func replaceWithPipe(t *testing.T, dir string) {
	must(t, os.RemoveAll(dir))
	must(t, syscall.Mkfifo(dir, 0o600))
}

// A journal whose name a file system or a program has written in other letters is the same conversation.
func TestNamesInOtherLetters(t *testing.T) {
	for _, change := range []func(string) string{
		strings.ToUpper, strings.ToLower,
		func(name string) string { return strings.TrimSuffix(name, ".jsonl") + ".JSONL" },
	} {
		s := newSample(t)
		name := change(filepath.Base(s.path))
		must(t, os.Rename(s.path, filepath.Join(filepath.Dir(s.path), name)))
		t.Run(name, func(t *testing.T) {
			infos, err := s.List(t.Context())
			if len(infos) != 1 || infos[0].ID != sampleID || err != nil {
				t.Fatalf("List = %+v, %v", infos, err)
			}
			_, recs, _ := s.open(t)
			if diff := cmp.Diff(s.recs, recs); diff != "" {
				t.Error(diff)
			}
			if _, err := s.Create(t.Context(), sampleID, time.Date(2025, 9, 24, 23, 59, 1, 0, time.UTC)); !errors.Is(err, fs.ErrExist) {
				t.Errorf("Create = %v", err)
			}
			must(t, os.WriteFile(s.path, s.data, 0o600)) // the proper one is back as well
			infos, err = s.List(t.Context())
			if len(infos) != 1 || infos[0].Path != s.path || err != nil {
				t.Errorf("with both: List = %+v, %v", infos, err)
			}
		})
	}
}

// An error for people names the file and says what to do.
func TestNotRegularError(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{
		fs.ModeSymlink:   "/x is a symbolic link, not a file: fermata fsck --repair puts a copy of what it leads to in its place",
		fs.ModeDir:       "/x is a directory, not a file: move it away",
		fs.ModeNamedPipe: "/x is a named pipe, not a file: move it away",
		fs.ModeSocket:    "/x is a socket, not a file: move it away",
		fs.ModeDevice:    "/x is a device, not a file: move it away",
	} {
		if got := fmt.Sprint(&file.NotRegularError{Path: "/x", Mode: mode}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
