package foreign_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/foreign"
)

// Times that nothing can have happened at are not known: some cannot be recorded.
func TestTimesThatCannotBe(t *testing.T) {
	for _, number := range []string{"9223372036854775807", "-9223372036854775808", "1", "99999999999999"} {
		dir := t.TempDir()
		write(t, dir, "storage/session/p/ses_1.json", `{"time":{"created":`+number+`,"updated":`+number+`}}`)
		write(t, dir, "storage/message/ses_1/m1.json", `{"role":"user","time":{"created":`+number+`}}`)
		write(t, dir, "storage/part/m1/p1.json", `{"type":"text","text":"hello"}`)
		write(t, dir, "storage/message/ses_1/m2.json", `{"role":"assistant","time":{"created":`+number+`,"completed":`+number+`}}`)
		write(t, dir, "storage/part/m2/p2.json", `{"type":"tool","callID":"c","tool":"bash","state":{"status":"completed","input":{},"output":"out","time":{"start":-1,"end":`+number+`}}}`)
		c, _ := read(t, &foreign.Home{Agent: foreign.OpenCode, Dir: dir, Scratch: t.TempDir()})
		if !c.Started.IsZero() || !c.Modified.IsZero() || texts(c) != "hello" {
			t.Errorf("%s: %+v", number, c.Session)
		}
	}
	h := codexHome(t, `{"timestamp":"9998-11-01T10:00:00.000Z","type":"session_meta","payload":{"id":"x","timestamp":"0001-11-01T10:00:00.000Z"}}`, said(1, "user", "hello"))
	files, _ := filepath.Glob(filepath.Join(h.Dir, "sessions/*/*/*/*"))
	if err := os.Chtimes(files[0], time.Unix(1<<40, 0), time.Unix(1<<33, 0)); err != nil {
		t.Fatal(err)
	}
	if c, _ := read(t, h); !c.Started.IsZero() || !c.Modified.IsZero() {
		t.Errorf("%+v", c.Session)
	}
}
