package foreign_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/foreign"
)

// ocLayouts are the directories of opencode before it had a database: of sessions, of the messages of one, and of the parts of one of those.
var ocLayouts = map[string][3]string{
	"before 1.2":     {"storage/session/p1", "storage/message/ses_1", "storage/part/%s"},
	"first versions": {"project/work/storage/session/info", "project/work/storage/session/message/ses_1", "project/work/storage/session/part/ses_1/%s"},
}

// writeOpenCode writes a session of two turns in a layout. The first versions have the directory in the answers only.
func writeOpenCode(t *testing.T, dir string, at [3]string, revert string) {
	t.Helper()
	directory := `"directory":"/work/project",`
	if strings.HasPrefix(at[0], "project/") {
		directory = ""
	}
	write(t, dir, at[0]+"/ses_1.json", `{"id":"../../other","projectID":"p1",`+directory+`"title":"a title","version":"0.9.1","time":{"created":1700000000000,"updated":1700000009000}`+revert+`}`)
	message := func(id string, created int, more string) {
		write(t, dir, at[1]+"/"+id+".json", fmt.Sprintf(`{"id":%q,"sessionID":"ses_1","time":{"created":17000000000%02d,"completed":1700000009000},%s}`, id, created, more))
	}
	part := func(of, id, more string) {
		write(t, dir, fmt.Sprintf(at[2], of)+"/"+id+".json", fmt.Sprintf(`{"id":%q,"messageID":%q,%s}`, id, of, more))
	}
	message("msg_b", 10, `"role":"user"`) // ids and times in different orders
	part("msg_b", "prt_1", `"type":"text","text":"first"`)
	message("msg_a", 11, `"role":"assistant","modelID":"m","path":{"cwd":"/work/project"}`)
	part("msg_a", "prt_2", `"type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"out","metadata":{"exit":0}}`)
	part("msg_a", "prt_3", `"type":"text","text":"done"`)
	message("msg_c", 12, `"role":"user"`)
	part("msg_c", "prt_4", `"type":"text","text":"second"`)
}

func TestOpenCodeFiles(t *testing.T) {
	for name, at := range ocLayouts {
		for revert, want := range map[string]string{
			"":                                "first done second",
			`,"revert":{"messageID":"msg_c"}`: "first done",
			`,"revert":{"messageID":"msg_a","partID":"prt_3"}`:   "first",
			`,"revert":{"messageID":"msg_b","snapshot":"12345"}`: "",
		} {
			dir := t.TempDir()
			writeOpenCode(t, dir, at, revert)
			c, events := read(t, &foreign.Home{Agent: foreign.OpenCode, Dir: dir, Scratch: t.TempDir()})
			if c.ID != "ses_1" || c.Cwd != "/work/project" || c.Title != "a title" || c.Version != "0.9.1" || c.Started.Unix() != 1700000000 || c.Modified.Unix() != 1700000009 {
				t.Errorf("%s: %+v", name, c.Session)
			}
			if got := texts(c); got != want {
				t.Errorf("%s %s: %q, want %q", name, revert, got, want)
			}
			if out := outputs(events); (len(out) > 0) != (want != "") || len(out) > 0 && out[0] != "out" {
				t.Errorf("%s %s: outputs %q", name, revert, out)
			}
		}
	}
}

// A session that opencode has moved into its database is there once; one that it has not is found beside it.
func TestOpenCodeFilesBesideTheDatabase(t *testing.T) {
	h := opencodeHome(t)
	writeOpenCode(t, h.Dir, ocLayouts["before 1.2"], "")
	writeOpenCode(t, h.Dir, ocLayouts["first versions"], "")
	write(t, h.Dir, "storage/session/p1/ses_old.json", `{"id":"ses_old","directory":"/work","time":{"created":1600000000000}}`)
	list, err := h.List(t.Context())
	if err != nil || len(list) != 3 || list[2].ID != "ses_old" {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, s := range list[:2] {
		if filepath.Base(s.Path) != "opencode.db" {
			t.Errorf("%s is read from %s", s.ID, s.Path)
		}
	}
	one := &foreign.Home{Agent: foreign.OpenCode, Dir: h.Dir, File: filepath.Join(h.Dir, "storage/session/p1/ses_1.json")}
	if c, _ := read(t, one); texts(c) != "first done second" {
		t.Errorf("one file: %q", texts(c))
	}
}

// What is damaged is reported, and the rest is read.
func TestOpenCodeFilesThatAreDamaged(t *testing.T) {
	dir := t.TempDir()
	writeOpenCode(t, dir, ocLayouts["before 1.2"], "")
	write(t, dir, "storage/message/ses_1/msg_a0.json", `{"id":`)
	write(t, dir, "storage/part/msg_c/prt_40.json", "\x00\x00")
	if err := os.MkdirAll(filepath.Join(dir, "storage/part/msg_c/prt_5.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "storage/session/p1/ses_torn.json", `{"id":"ses_torn","ti`)
	h := &foreign.Home{Agent: foreign.OpenCode, Dir: dir, Scratch: t.TempDir()}
	list, err := h.List(t.Context())
	if err != nil || len(list) != 2 || list[1].Damaged == "" {
		t.Fatalf("%+v, %v", list, err)
	}
	c, err := h.Read(t.Context(), list[0])
	if err != nil || texts(c) != "first done second" || len(c.Losses) != 3 || !strings.Contains(c.Losses[0], "msg_a0") {
		t.Errorf("%v, %q, losses %q", err, texts(c), c.Losses)
	}
	judged(t, c)
}
