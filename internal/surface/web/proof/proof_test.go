package proof

import (
	"strings"
	"testing"
	"time"
)

func newKey(t *testing.T) Key {
	t.Helper()
	k, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAClaimIsSigned(t *testing.T) {
	page, other := newKey(t), newKey(t)
	header := page.Claim(Claim{Session: "s", Method: "POST", URL: "http://127.0.0.1:1/x", ID: "1"}, []byte("body"))
	c, err := Parse(header)
	if err != nil || c.Session != "s" || c.ID != "1" {
		t.Fatalf("%+v, %v", c, err)
	}
	if !c.SignedBy(page.Public()) || c.SignedBy(other.Public()) || c.SignedBy("") || c.SignedBy("x") {
		t.Error("the signature does not tell keys apart")
	}
	if !c.Has([]byte("body")) || c.Has([]byte("bodx")) || c.Has(nil) {
		t.Error("the claim does not tell bodies apart")
	}
	part, _, _ := strings.Cut(header, ".")
	forged := other.Claim(Claim{Session: "s", Method: "POST", URL: "http://127.0.0.1:1/x", ID: "1"}, []byte("body"))
	_, signature, _ := strings.Cut(forged, ".")
	for _, wrong := range []string{"", ".", part, part + ".", part + "." + signature, part + ".!", "!." + signature, strings.Repeat("a", maxHeader+1), "e30." + signature} {
		if c, err := Parse(wrong); err == nil && c.SignedBy(page.Public()) {
			t.Errorf("%q was taken", wrong)
		}
	}
}

func TestAClaimIsTakenOnce(t *testing.T) {
	f := NewFresh()
	now := time.Now()
	c := Claim{Session: "s", ID: "1", Nonce: f.Nonce, Time: now.Unix()}
	for _, tt := range []struct {
		name   string
		change func(*Claim)
		want   error
	}{
		{"another process", func(c *Claim) { c.Nonce = NewFresh().Nonce }, ErrNonce},
		{"too early", func(c *Claim) { c.Time -= 100 }, ErrTime},
		{"too late", func(c *Claim) { c.Time += 100 }, ErrTime},
		{"first", func(*Claim) {}, nil},
		{"again", func(*Claim) {}, ErrReplay},
		{"another id", func(c *Claim) { c.ID = "2" }, nil},
		{"another session", func(c *Claim) { c.Session = "t" }, nil},
	} {
		x := c
		tt.change(&x)
		if err := f.Take(x, now); err != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	later := now.Add(3 * window)
	if err := f.Take(Claim{Session: "s", ID: "3", Nonce: f.Nonce, Time: later.Unix()}, later); err != nil {
		t.Fatal(err)
	}
	if n := len(f.seen); n != 1 {
		t.Errorf("%d ids are remembered", n)
	}
}

// What a server signs for one challenge, request or origin shows nothing for another.
func TestWhatAServerSigns(t *testing.T) {
	server, other := newKey(t), newKey(t)
	h := server.Hello("challenge", "http://127.0.0.1:1", "n", 1)
	if !h.Answers("challenge", server.Public()) || h.Answers("another", server.Public()) || h.Answers("challenge", other.Public()) {
		t.Error("hello does not tell challenges or keys apart")
	}
	moved := h
	moved.Origin = "http://127.0.0.1:2"
	if moved.Answers("challenge", server.Public()) {
		t.Error("hello can be passed on for another port")
	}
	sig := server.Answer("id", "http://127.0.0.1:1")
	if !AnsweredBy(server.Public(), "id", "http://127.0.0.1:1", sig) || AnsweredBy(server.Public(), "id", "http://127.0.0.1:2", sig) ||
		AnsweredBy(server.Public(), "id2", "http://127.0.0.1:1", sig) || AnsweredBy(other.Public(), "id", "http://127.0.0.1:1", sig) {
		t.Error("an answer does not tell ids, origins or keys apart")
	}
	text, err := server.Text()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadKey(text)
	if err != nil || again.Public() != server.Public() || again.Print() != server.Print() || again.Print() == other.Print() {
		t.Errorf("read again: %v", err)
	}
	for _, wrong := range []string{"", "x", "AAAA"} {
		if _, err := ReadKey(wrong); err == nil {
			t.Errorf("%q was read", wrong)
		}
	}
}
