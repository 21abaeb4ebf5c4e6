package fleet

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// What is done with conversations beside running them works as on files, from any machine.
func TestManageOnNATS(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	a, b := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	name := filepath.Join(a.dir, "f.txt")
	if err := os.WriteFile(name, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.must(append(turn, "write f.txt: two")...)
	list := b.must("list")
	if !strings.Contains(list, "write f.txt: two") {
		t.Fatalf("list: %s", list)
	}
	id := strings.Fields(strings.Split(list, "\n")[1])[0]
	if out := b.must("show", id); !strings.Contains(out, "M f.txt") {
		t.Errorf("show: %s", out)
	}
	b.must("undo", id, "--yes")
	if text, err := os.ReadFile(name); err != nil || string(text) != "one\n" {
		t.Errorf("after undo the file has %q, %v", text, err)
	}
	for _, args := range [][]string{{"fsck", "--repair"}, {"rename", id, "a new name"}, {"archive", id}, {"unarchive", id}} {
		b.must(args...)
	}
	if out := a.must("list"); !strings.Contains(out, "a new name") {
		t.Errorf("list: %s", out)
	}
	if out := a.must("fsck"); strings.Count(out, " ok") != 1 {
		t.Errorf("fsck: %s", out)
	}
	b.must("delete", id, "--yes")
	if out, err := a.run("show", id); err == nil {
		t.Errorf("it can be read after it was deleted: %s", out)
	}
}

// The page of one machine shows and interrupts what another runs.
func TestPageOnAnotherMachine(t *testing.T) {
	t.Parallel()
	s := listen(t, &server.Options{})
	a, b := newMachine(t, s.ClientURL()), newMachine(t, s.ClientURL())
	cmd, out, mark := a.startTurn()
	_, page := b.start("serve", "--http")
	link := regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/\S*[?#&]link=(\S+)`)
	var found []string
	eventually(t, "the page is served", func() bool {
		found = link.FindStringSubmatch(page.String())
		return found != nil
	})
	var session struct{ Token string }
	call := func(path, body string, into any) {
		t.Helper()
		method := http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
		req, err := http.NewRequestWithContext(t.Context(), method, found[1]+"/api/v1"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+session.Token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		if err := json.Unmarshal(text, into); err != nil || res.StatusCode >= 300 {
			t.Fatalf("%s: %s, %v: %s", path, res.Status, err, text)
		}
	}
	call("/login", `{"code":"`+found[2]+`"}`, &session)
	var list struct{ Conversations []struct{ ID string } }
	call("/conversations", "", &list)
	if len(list.Conversations) != 1 {
		t.Fatalf("the page lists %v", list)
	}
	path := "/conversations/" + list.Conversations[0].ID
	var snap struct{ Active bool }
	if call(path, "", &snap); !snap.Active {
		t.Error("the page shows no running turn")
	}
	var receipt struct{ Turn int }
	if call(path+"/ops", `{"kind":"interrupt","body":{}}`, &receipt); receipt.Turn != 1 {
		t.Errorf("the interrupt is of turn %d", receipt.Turn)
	}
	_ = cmd.Wait()
	if running(mark) != 0 || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("%d commands run; the machine that ran the turn said %s", running(mark), out)
	}
}
