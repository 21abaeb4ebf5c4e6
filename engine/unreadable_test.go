package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/enginetest"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file"
	p "github.com/fermata-agent/fermata/protocol"
)

// A conversation that cannot be read is listed with the reason. In a list of one directory, to which it may belong or not, the
// reason is beside the list; and where nothing can be read, the list fails: it is not empty.
func TestListNamesWhatCannotBeRead(t *testing.T) {
	home := t.TempDir()
	store := file.New(home, file.Options{})
	now := time.Now()
	var paths [2]string
	for i := range paths {
		id := string(p.NewConversationID(now))
		j, err := store.Create(t.Context(), id, now)
		if err != nil {
			t.Fatal(err)
		}
		j.Append(journal.Entry{Kind: "conversation_started", Body: json.RawMessage(fmt.Sprintf(`{"id":%q,"settings":{"cwd":"/work%d"}}`, id, i))})
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		in, err := store.Stat(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		paths[i] = in.Path
	}
	e := enginetest.Open(t, store, engine.Config{})
	replace(t, paths[0])

	page, err := e.List(t.Context(), engine.ListOptions{})
	if err != nil || len(page.Items) != 2 || page.Total != 2 || len(page.Unread) != 0 {
		t.Fatalf("List = %+v, %v", page, err)
	}
	odd := page.Items[0]
	if odd.Path != paths[0] {
		odd = page.Items[1]
	}
	if !strings.Contains(odd.Unreadable, "is a named pipe") || !strings.Contains(odd.Title, odd.Unreadable) || odd.ID == "" {
		t.Errorf("it is listed as %+v", odd)
	}
	page, err = e.List(t.Context(), engine.ListOptions{Cwd: "/work1"})
	if err != nil || len(page.Items) != 1 || page.Items[0].Path != paths[1] || len(page.Unread) != 1 {
		t.Errorf("of one directory: %+v, %v", page, err)
	}
	if page, err := e.List(t.Context(), engine.ListOptions{Cwd: "/work0"}); err == nil {
		t.Errorf("of the other directory: %+v", page)
	}
	if page, err := e.List(t.Context(), engine.ListOptions{Archived: true}); err != nil || len(page.Items) != 0 || len(page.Unread) != 0 {
		t.Errorf("archived: %+v, %v", page, err)
	}

	replace(t, filepath.Join(home, "archived"))
	if page, err := e.List(t.Context(), engine.ListOptions{Archived: true}); err == nil {
		t.Errorf("archived ones that cannot be read: %+v", page)
	}
	if page, err := e.List(t.Context(), engine.ListOptions{}); err != nil || len(page.Items) != 2 || len(page.Unread) != 0 {
		t.Errorf("the others: %+v, %v", page, err)
	}
}

// replace puts a named pipe at a path.
func replace(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
