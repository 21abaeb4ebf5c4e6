package composer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A test that needs another process starts itself with these set.
const (
	envPath  = "FERMATA_TEST_HISTORY"
	envName  = "FERMATA_TEST_NAME"
	envBytes = "FERMATA_TEST_BYTES"
	appended = 1000
)

func TestMain(m *testing.M) {
	path := os.Getenv(envPath)
	if path == "" {
		os.Exit(m.Run())
	}
	h := NewHistoryFile(path)
	if n, err := strconv.ParseInt(os.Getenv(envBytes), 10, 64); err == nil {
		h.maxBytes = n
	}
	io.Copy(io.Discard, os.Stdin) // until all are ready
	for i := range appended {
		if err := h.Add(fmt.Sprintf("%s %d", os.Getenv(envName), i)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func load(t *testing.T, h *HistoryFile) []string {
	t.Helper()
	got, err := h.Load()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func add(t *testing.T, h *HistoryFile, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if err := h.Add(s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHistoryIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "home", "history.jsonl")
	if got := load(t, NewHistoryFile(path)); got != nil {
		t.Errorf("without a file there is %q", got)
	}
	want := []string{"one", "two\nlines", "漢字 \"quoted\" \x00", "<&>"}
	add(t, NewHistoryFile(path), want...)
	add(t, NewHistoryFile(path), "")
	if diff := cmp.Diff(want, load(t, NewHistoryFile(path))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, want 0600", info.Mode().Perm())
	}
}

func TestTornAndForeignLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	odd := `{"ts":1,"text":"first"}` + "\n" + "not json\n\x00\x00\xff\n" + `{"session_id":"x","ts":2,"text":"of another program"}` + "\n" + `{"ts":3,"text":"torn`
	if err := os.WriteFile(path, []byte(odd), 0o600); err != nil {
		t.Fatal(err)
	}
	h := NewHistoryFile(path)
	want := []string{"first", "of another program"}
	if diff := cmp.Diff(want, load(t, h)); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	add(t, h, "after the torn line")
	if diff := cmp.Diff(append(want, "after the torn line"), load(t, h)); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(data, []byte(odd+"\n")) {
		t.Error("what cannot be read was not left alone")
	}
}

func TestUnreadableFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if err := os.Mkdir(path, 0o700); err != nil { // cannot be read even by root
		t.Fatal(err)
	}
	h := NewHistoryFile(path)
	_, err := h.Load()
	for _, err := range []error{err, h.Add("text")} {
		if err == nil || !strings.Contains(err.Error(), "history") || !strings.Contains(err.Error(), path) {
			t.Errorf("error is %v, want one that names the history and %s", err, path)
		}
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		t.Errorf("what was in the way is gone: %v", err)
	}
}

func TestLongHistoryIsShortened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	h := NewHistoryFile(path)
	h.maxBytes = 4000
	var want []string
	for i := range 500 {
		want = append(want, fmt.Sprintf("entry %d", i))
		add(t, h, want[i])
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > h.maxBytes || info.Mode().Perm() != 0o600 {
			t.Fatalf("size %d, mode %v", info.Size(), info.Mode())
		}
		got := load(t, h)
		if len(got) < min(i+1, 40) {
			t.Fatalf("only %d entries are left of %d", len(got), i+1)
		}
		if diff := cmp.Diff(want[len(want)-len(got):], got); diff != "" {
			t.Fatalf("not the newest ones are left (-want +got):\n%s", diff)
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("files left: %v %v", left, err)
	}
}

func TestShorteningFollowsALink(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "history.jsonl")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	h := NewHistoryFile(link)
	h.maxBytes = 200
	for i := range 50 {
		add(t, h, fmt.Sprintf("entry %d", i))
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", info, err)
	}
	if got := load(t, h); got[len(got)-1] != "entry 49" {
		t.Errorf("history is %q", got)
	}
}

func TestBigEntries(t *testing.T) {
	h := NewHistoryFile(filepath.Join(t.TempDir(), "history.jsonl"))
	h.maxBytes, h.maxEntry = 1000, 900
	add(t, h, "small", strings.Repeat("x", 901), strings.Repeat("y", 900), strings.Repeat("z", 900))
	got := load(t, h)
	if len(got) != 1 || got[0] != strings.Repeat("z", 900) {
		t.Errorf("history is %.40q", got)
	}
}

func TestHugeFileIsReadFromItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	var data bytes.Buffer
	for i := range 1000 {
		line, _ := json.Marshal(historyEntry{1, fmt.Sprintf("entry %d", i)})
		data.Write(append(line, '\n'))
	}
	if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	h := NewHistoryFile(path)
	h.maxBytes, h.maxEntry = 500, 10
	if got := load(t, h); len(got) == 0 || len(got) > 20 || got[len(got)-1] != "entry 999" {
		t.Errorf("history is %q", got)
	}
	h.maxBytes, h.maxLoad = 1<<20, 7
	if got := load(t, h); len(got) != 7 || got[6] != "entry 999" {
		t.Errorf("history is %q", got)
	}
}

// other starts a process that appends as soon as its standard input is closed.
func other(t *testing.T, path, name, maxBytes string) (*exec.Cmd, io.Closer) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envPath+"="+path, envName+"="+name, envBytes+"="+maxBytes)
	cmd.Stderr = os.Stderr
	ready, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, ready
}

func TestTwoProcessesAppend(t *testing.T) {
	for _, maxBytes := range []string{"", "6000"} { // also while the file is shortened
		path := filepath.Join(t.TempDir(), "history.jsonl")
		a, goA := other(t, path, "a", maxBytes)
		b, goB := other(t, path, "b", maxBytes)
		goA.Close()
		goB.Close()
		for _, cmd := range []*exec.Cmd{a, b} {
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		next := map[string]int{"a": appended, "b": appended} // from the newest back
		got := load(t, NewHistoryFile(path))
		for i := len(got) - 1; i >= 0; i-- {
			name, n, _ := strings.Cut(got[i], " ")
			next[name]--
			if n != strconv.Itoa(next[name]) {
				t.Fatalf("limit %q: %q where entry %d of %s should be", maxBytes, got[i], next[name], name)
			}
		}
		if lines := bytes.Count(data, []byte("\n")); lines != len(got) {
			t.Errorf("limit %q: %d lines, and %d entries can be read", maxBytes, lines, len(got))
		}
		if want := 2 * appended; maxBytes == "" && len(got) != want {
			t.Errorf("%d entries, want %d", len(got), want)
		}
		if len(got) < 50 {
			t.Errorf("limit %q: only %d entries are left", maxBytes, len(got))
		}
	}
}

func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no disk that is always full")
	}
	f, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = NewHistoryFile(filepath.Join(t.TempDir(), "history.jsonl")).append(f, []byte("text"))
	if err == nil || !strings.Contains(err.Error(), "write history") || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("error is %v", err)
	}
}

func TestHomeThatIsAFile(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	if err := os.WriteFile(home, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := NewHistoryFile(filepath.Join(home, "history.jsonl"))
	if err := h.Add("text"); err == nil || !strings.Contains(err.Error(), "open history") {
		t.Errorf("error is %v", err)
	}
	if _, err := h.Load(); err == nil {
		t.Error("a history was read from a file that is no directory")
	}
}

func TestNewest(t *testing.T) {
	for _, tc := range []struct {
		data string
		room int
		want string
	}{
		{"a\nb\nc\n", 100, "a\nb\nc\n"},
		{"a\nb\nc\n", 6, "a\nb\nc\n"},
		{"a\nb\nc\n", 5, "b\nc\n"},
		{"a\nb\nc\n", 4, "b\nc\n"},
		{"a\nb\nc\n", 3, "c\n"},
		{"a\nb\nc\n", 1, "c\n"},
		{"a\nlong line\n", 5, "long line\n"},
		{"long line\n", 5, "long line\n"},
		{"a\ntorn", 2, "torn"},
	} {
		if got := string(newestLines([]byte(tc.data), tc.room)); got != tc.want {
			t.Errorf("%q in %d is %q, want %q", tc.data, tc.room, got, tc.want)
		}
	}
}

// A file that is far too large is read from its end, and shortened by the next entry.
func TestHistoryOfATerabyte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if err := errors.Join(os.WriteFile(path, []byte(`{"ts":1,"text":"old"}`+"\n"), 0o600), os.Truncate(path, 1<<40)); err != nil {
		t.Skip(err)
	}
	h := NewHistoryFile(path).Limit(1 << 16)
	if texts, err := h.Load(); len(texts) != 0 || err != nil {
		t.Errorf("%q, %v", texts, err)
	}
	if err := h.Add("new"); err != nil {
		t.Error(err)
	}
	if texts, err := h.Load(); !slices.Equal(texts, []string{"new"}) || err != nil {
		t.Errorf("%q, %v", texts, err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() > 1<<16 {
		t.Errorf("%v, %v", st, err)
	}
}
