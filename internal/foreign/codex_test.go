package foreign_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/fermata-agent/fermata/internal/foreign"
)

// item is a line of a rollout that holds an item.
func item(ordinal int, payload string) string {
	return fmt.Sprintf(`{"timestamp":"2026-11-01T10:00:%02d.000Z","ordinal":%d,"type":"response_item","payload":%s}`, ordinal, ordinal, payload)
}

func said(ordinal int, role, text string) string {
	kind := "output_text"
	if role == "user" {
		kind = "input_text"
	}
	return item(ordinal, fmt.Sprintf(`{"type":"message","role":%q,"content":[{"type":%q,"text":%q}]}`, role, kind, text))
}

func codexCall(ordinal int, id string) string {
	return item(ordinal, fmt.Sprintf(`{"type":"function_call","name":"shell","arguments":"{}","call_id":%q}`, id))
}

func codexOutput(ordinal int, id, text string) string {
	return item(ordinal, fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":%q}`, id, text))
}

// Files that Codex itself refuses, or sends so that a service refuses them, are read.
func TestCodexDamage(t *testing.T) {
	good := []string{meta, said(1, "user", "run it"), codexCall(2, "c1"), codexOutput(3, "c1", "out"), said(4, "assistant", "done")}
	for name, c := range map[string]struct {
		lines []string
		loss  string // a part of what is reported; empty if nothing is
	}{
		"whole":                    {good, ""},
		"byte order mark":          {append([]string{"\ufeff" + meta}, good[1:]...), ""},
		"torn head":                {append([]string{meta[40:]}, good[1:]...), "line 1 of"},
		"torn tail":                {append(append([]string{}, good...), `{"timestamp":"2026`), "line 6 of"},
		"zeros at the end":         {append(append([]string{}, good...), strings.Repeat("\x00", 500)), "zero bytes"},
		"a line behind a hole":     {append([]string{meta, "\x00\x00\x00" + good[1]}, good[2:]...), ""},
		"doubled line":             {append([]string{meta, good[1], good[2], good[2]}, good[3:]...), "repeats an earlier one"},
		"output before its call":   {[]string{meta, good[1], codexOutput(2, "c1", "out"), codexCall(3, "c1"), good[4]}, ""},
		"nested too deep":          {append(append([]string{}, good...), strings.Repeat("[", 60000)), "not whole"},
		"lines of unknown kinds":   {append([]string{meta, `{"type":"world_state","payload":{}}`, `{"type":"response_item","payload":{"type":"new"}}`}, good[1:]...), ""},
		"bytes that are not UTF-8": {append(append([]string{}, good...), said(5, "assistant", "x")[:60]+"\xff\xfe"), "not whole"},
	} {
		conv, events := read(t, codexHome(t, c.lines...))
		if got := strings.Join(outputs(events), "|"); got != "out" || texts(conv) != "run it done" {
			t.Errorf("%s: outputs %q, texts %q", name, got, texts(conv))
		}
		losses := strings.Join(conv.Losses, "\n")
		if c.loss == "" && losses != "" || !strings.Contains(losses, c.loss) {
			t.Errorf("%s: losses %q, want %q", name, losses, c.loss)
		}
	}
}

const other = "0199a0c2-bbbb-7bbb-8ccc-111122223333"

// A fork has only what came after it; the rest is in the file that it names.
func TestCodexFork(t *testing.T) {
	h := codexHome(t, meta, said(1, "user", "first"), said(2, "assistant", "one"), said(3, "user", "second"), said(4, "assistant", "two"))
	base := fmt.Sprintf(`,"forked_from_id":%[1]q,"history_base":{"thread_id":%[1]q,"end_ordinal_exclusive":3}`, "0199a0c2-aaaa-7bbb-8ccc-111122223333")
	head := strings.Replace(strings.Replace(meta, "0199a0c2-aaaa", "0199a0c2-bbbb", 1), `"source":"exec"`, `"source":"exec"`+base, 1)
	write(t, h.Dir, "sessions/2026/11/02/rollout-2026-11-02T10-00-00-"+other+".jsonl", head, said(3, "user", "instead"), said(4, "assistant", "other"))
	for id, want := range map[string]string{"0199a0c2-aaaa-7bbb-8ccc-111122223333": "first one second two", other: "first one instead other"} {
		if c := readID(t, h, id); texts(c) != want || len(c.Losses) > 0 {
			t.Errorf("%s: %s, losses %v; want %s", id, texts(c), c.Losses, want)
		}
	}
	os.RemoveAll(filepath.Join(h.Dir, "sessions", "2026", "11", "01"))
	if c := readID(t, h, other); texts(c) != "instead other" || len(c.Losses) != 1 {
		t.Errorf("without its beginning: %s, losses %v", texts(c), c.Losses)
	}
}

// A revert begins a second file of the same session, which names the first as its beginning; the newer one counts.
func TestCodexRevert(t *testing.T) {
	h := codexHome(t, meta, said(1, "user", "first"), said(2, "assistant", "one"), said(3, "user", "second"), said(4, "assistant", "two"))
	id := "0199a0c2-aaaa-7bbb-8ccc-111122223333"
	head := strings.Replace(meta, `"source":"exec"`, fmt.Sprintf(`"source":"exec","history_base":{"thread_id":%q,"end_ordinal_exclusive":3}`, id), 1)
	write(t, h.Dir, "sessions/2026/11/01/rollout-2026-11-01T11-00-00-"+id+"_0199a0c2-cccc-7bbb-8ccc-111122223333.jsonl", head, said(3, "user", "again"), said(4, "assistant", "three"))
	c, _ := read(t, h)
	if texts(c) != "first one again three" || len(c.Branches) != 1 || len(c.Losses) > 0 {
		t.Fatalf("%s, branches %v, losses %v", texts(c), c.Branches, c.Losses)
	}
	old, err := h.ReadBranch(t.Context(), c.Session, c.Branches[0])
	if err != nil || texts(old) != "first one second two" {
		t.Errorf("what was reverted: %s, %v", texts(old), err)
	}
}

// A base that names its own file ends.
func TestCodexCircle(t *testing.T) {
	id := "0199a0c2-aaaa-7bbb-8ccc-111122223333"
	head := strings.Replace(meta, `"source":"exec"`, fmt.Sprintf(`"source":"exec","history_base":{"thread_id":%q,"end_ordinal_exclusive":99}`, id), 1)
	if c, _ := read(t, codexHome(t, head, said(1, "user", "hi"))); texts(c) != "hi" || len(c.Losses) != 1 {
		t.Errorf("%s, losses %v", texts(c), c.Losses)
	}
}

func readID(t *testing.T, h *foreign.Home, id string) foreign.Conversation {
	t.Helper()
	list, err := h.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if s.ID == id {
			c, err := h.Read(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			judged(t, c)
			return c
		}
	}
	t.Fatalf("there is no session %s", id)
	return foreign.Conversation{}
}

func TestCodexCompressed(t *testing.T) {
	h := codexHome(t, meta, said(1, "user", "hi"), said(2, "assistant", "ho"))
	list, err := h.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(list[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list[0].Path+".zst", enc.EncodeAll(data, nil), 0o644); err != nil {
		t.Fatal(err)
	}
	os.Remove(list[0].Path)
	if c, _ := read(t, h); texts(c) != "hi ho" {
		t.Error(texts(c))
	}
}

// Nothing but a regular file is opened: a pipe would wait for ever.
func TestNoRegularFile(t *testing.T) {
	h := codexHome(t, meta, said(1, "user", "hi"))
	list, err := h.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(list[0].Path)
	if err := os.Symlink("/dev/zero", list[0].Path); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Read(t.Context(), list[0]); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}
