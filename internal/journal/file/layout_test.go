package file_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	"github.com/fermata-agent/fermata/protocol"
)

// tree lists a directory as lines of mode and path.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		must(t, err)
		st, err := d.Info()
		must(t, err)
		rel, _ := filepath.Rel(dir, path)
		all = append(all, fmt.Sprint(st.Mode(), " ", filepath.ToSlash(rel)))
		return nil
	})
	must(t, err)
	return all[1:]
}

func TestLayout(t *testing.T) {
	home := filepath.Join(t.TempDir(), "new", "home")
	s := file.New(home, file.Options{})
	cest := time.FixedZone("CEST", 7200)
	j, err := s.Create(t.Context(), sampleID, time.Date(2026, 11, 15, 1, 41, 54, 0, cest))
	must(t, err)
	j.Append(e("a"))
	name := "conversations/2026/11/14/2026-11-14T23-41-54-" + sampleID + ".jsonl"
	want := []string{
		"drwx------ conversations",
		"drwx------ conversations/2026",
		"drwx------ conversations/2026/11",
		"drwx------ conversations/2026/11/14",
		"-rw------- " + name,
		"-rw------- " + name + ".lock",
	}
	if diff := cmp.Diff(want, tree(t, home)); diff != "" {
		t.Errorf("while open: %s", diff)
	}
	var owner journal.Owner
	b, err := os.ReadFile(filepath.Join(home, name+".lock"))
	if err != nil || json.Unmarshal(b, &owner) != nil || owner != protocol.Self("") {
		t.Errorf("lock file has %q, %v", b, err)
	}
	must(t, j.Close())
	if diff := cmp.Diff(want[:5], tree(t, home)); diff != "" {
		t.Errorf("when closed: %s", diff)
	}

	must(t, s.Archive(t.Context(), sampleID))
	archived := "archived" + strings.TrimPrefix(name, "conversations")
	if got := tree(t, home); !slices.Contains(got, "-rw------- "+archived) || slices.Contains(got, want[4]) {
		t.Errorf("archived: %v", got)
	}
	infos, err := s.List(t.Context())
	must(t, err)
	if len(infos) != 1 || infos[0].Path != filepath.Join(home, archived) || infos[0].Size == 0 || !infos[0].Archived {
		t.Errorf("List = %+v", infos)
	}
	must(t, s.Delete(t.Context(), sampleID))
	for _, line := range tree(t, home) {
		if !strings.HasPrefix(line, "d") {
			t.Errorf("left behind: %s", line)
		}
	}
}

// Everything that belongs to a conversation moves and goes with it.
func TestSideFilesFollow(t *testing.T) {
	s := newSample(t)
	s.replace(t, append(bytes.Clone(s.data), "torn"...))
	j, err := s.Open(t.Context(), sampleID)
	must(t, err)
	must(t, j.Checkpoint(t.Context(), 8, []byte("state")))
	must(t, j.Close())
	must(t, s.Archive(t.Context(), sampleID))
	path := s.Path(sampleID)
	for _, suffix := range []string{"", ".damaged", ".ckpt"} {
		_, was := os.Stat(s.path + suffix)
		_, is := os.Stat(path + suffix)
		if !errors.Is(was, fs.ErrNotExist) || is != nil {
			t.Errorf("%q: %v, %v", suffix, was, is)
		}
	}
	must(t, os.WriteFile(path+".ckpt.tmp", nil, 0o600))
	must(t, os.WriteFile(path+".tmp", nil, 0o600))
	must(t, s.Delete(t.Context(), sampleID))
	left, err := os.ReadDir(filepath.Dir(path))
	if len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Every line is JSON that says what it is.
func TestLinesAreJSON(t *testing.T) {
	s := newSample(t)
	var n uint64
	for _, l := range s.lines {
		var line struct {
			N      *uint64
			T      time.Time
			Turn   int
			Kind   string
			Closes string
			Body   json.RawMessage
			Item   string
			Tag    string
			At     int64
			Text   string
			Of     string
			Prev   string
			Sum    string
		}
		d := json.NewDecoder(bytes.NewReader(l))
		d.DisallowUnknownFields()
		must(t, d.Decode(&line))
		switch {
		case len(line.Sum) != 8 || len(line.Of) != 8 || len(line.Prev) != 8:
			t.Errorf("no sum or link: %s", l)
		case line.N == nil && (line.Item == "" || line.Tag == "" || line.Text == ""):
			t.Errorf("not an item: %s", l)
		case line.N != nil && (line.T.IsZero() || line.Kind == "" || line.Body == nil):
			t.Errorf("not a record: %s", l)
		case line.N != nil:
			n++
			want(t, "number", *line.N, n)
		}
	}
}

// Conversations are found also where their id does not say that they began.
func TestFind(t *testing.T) {
	s := file.New(t.TempDir(), file.Options{})
	now := time.Date(2026, 3, 1, 0, 0, 0, 1e6, time.UTC)
	for _, days := range []int{0, -1, 1, 100, -400} {
		id := string(protocol.NewConversationID(now))
		for _, id := range []string{id, fmt.Sprint("plain", days+400)} {
			j, err := s.Create(t.Context(), id, now.AddDate(0, 0, days))
			must(t, err)
			must(t, j.Close())
			j, err = s.Open(t.Context(), id)
			must(t, err)
			must(t, j.Close())
		}
		must(t, s.Archive(t.Context(), id))
		j, err := s.Open(t.Context(), id)
		must(t, err)
		must(t, j.Close())
	}
	infos, err := s.List(t.Context())
	want(t, "conversations", len(infos), 10)
	must(t, err)
}

// Nothing is overwritten, even if the id does not say where to look first.
func TestCreateOverwritesNothing(t *testing.T) {
	s := file.New(t.TempDir(), file.Options{})
	now := time.Now()
	j, err := s.Create(t.Context(), "plain", now)
	must(t, err)
	j.Append(e("a"))
	must(t, j.Close())
	if _, err := s.Create(t.Context(), "plain", now); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create = %v", err)
	}
	j, err = s.Open(t.Context(), "plain")
	must(t, err)
	want(t, "records", kinds(t, j), "a")
	must(t, j.Close())
}

// An id that was made just now may have been used in the meantime.
func TestCreateWithAFreshIDOverwritesNothing(t *testing.T) {
	for _, between := range []time.Duration{0, 100 * time.Millisecond, time.Second, 3 * time.Second} {
		s := file.New(t.TempDir(), file.Options{})
		now := time.Now()
		id := string(protocol.NewConversationID(now))
		j, err := s.Create(t.Context(), id, now)
		must(t, err)
		must(t, j.Close())
		if _, err := s.Create(t.Context(), id, now.Add(between)); !errors.Is(err, fs.ErrExist) {
			t.Errorf("after %s: Create = %v", between, err)
		}
		must(t, s.Archive(t.Context(), id))
		if _, err := s.Create(t.Context(), id, now.Add(between)); !errors.Is(err, fs.ErrExist) {
			t.Errorf("archived, after %s: Create = %v", between, err)
		}
	}
}

// What has not the name of a journal is not listed.
func TestListPassesOverTheRest(t *testing.T) {
	home := t.TempDir()
	s := file.New(home, file.Options{})
	j, err := s.Create(t.Context(), sampleID, time.Now())
	must(t, err)
	must(t, j.Close())
	dir := filepath.Join(home, "conversations")
	for _, name := range []string{"notes.txt", "x.jsonl", "2026-11-15T11-41-54-.jsonl", "2026-99-15T11-41-54-abc.jsonl", "2026-11-15T11-41-54-a b.jsonl"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	must(t, os.Mkdir(filepath.Join(dir, "2026-11-15T11-41-54-abc.jsonl"), 0o700))
	must(t, os.Symlink("/nowhere", filepath.Join(dir, "notes")))
	infos, err := s.List(t.Context())
	if len(infos) != 1 || infos[0].ID != sampleID || err != nil {
		t.Errorf("List = %+v, %v", infos, err)
	}
}

// A view changes nothing and reports everything.
func TestViewOfDamage(t *testing.T) {
	s := newSample(t)
	data := bytes.Clone(s.data)
	at2, n2 := s.lineOf(2)
	at4, n4 := s.lineOf(4)
	clear(data[at2 : at2+n2-1])
	data[at4+20] ^= 1
	again, size := s.lineOf(5)
	data = slices.Concat(data, data[again:again+size], []byte("torn"))
	s.replace(t, data)
	before := tree(t, filepath.Dir(s.path))

	v, err := s.View(t.Context(), sampleID)
	must(t, err)
	defer v.Close()
	recs, err := v.Read(t.Context(), 0, 100)
	must(t, err)
	var seqs []uint64
	for _, r := range recs {
		seqs = append(seqs, r.Seq)
	}
	if !slices.Equal(seqs, []uint64{1, 3, 5, 6, 7, 8}) {
		t.Errorf("Read gives %v", seqs)
	}
	tail, err := v.Tail(t.Context(), 2)
	if len(tail) != 2 || tail[0].Seq != 7 || tail[1].Seq != 8 || err != nil {
		t.Errorf("Tail = %+v, %v", tail, err)
	}
	faults, err := v.Check(t.Context())
	must(t, err)
	var texts []string
	for _, f := range faults {
		texts = append(texts, fmt.Sprintf("%d@%d %s", f.Line, f.Offset, f.Text))
	}
	line := func(off int) int { return bytes.Count(data[:off], []byte("\n")) + 1 }
	after2, after4 := nextRecord(s, 3), nextRecord(s, 5)
	if diff := cmp.Diff([]string{
		fmt.Sprintf("%d@%d %d zero bytes", line(at2), at2, n2-1),
		fmt.Sprintf("%d@%d damaged line of 1 bytes", line(at2), at2+n2-1),
		fmt.Sprintf("%d@%d records 2 to 2 are missing", line(after2), after2),
		fmt.Sprintf("%d@%d damaged line of %d bytes", line(at4), at4, n4),
		fmt.Sprintf("%d@%d records 4 to 4 are missing", line(after4), after4),
		fmt.Sprintf("%d@%d record 5 again", line(len(s.data)), len(s.data)),
		fmt.Sprintf("%d@%d unfinished line of 4 bytes", line(len(data)), len(data)-4),
	}, texts); diff != "" {
		t.Error(diff)
	}
	if now, _ := os.ReadFile(s.path); !bytes.Equal(now, data) || !slices.Equal(before, tree(t, filepath.Dir(s.path))) {
		t.Error("the view changed something")
	}
}

func nextRecord(s *sample, seq uint64) int {
	off, _ := s.lineOf(seq)
	return off
}
