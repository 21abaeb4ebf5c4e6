package access

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	p "github.com/fermata-agent/fermata/protocol"
)

func store(t *testing.T) (*Store, *time.Time) {
	t.Helper()
	s := Open(t.TempDir())
	now := time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	s.now = func() time.Time { return now }
	return s, &now
}

func link(t *testing.T, s *Store, r Rights) string {
	t.Helper()
	code, err := s.NewLink(r)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestALinkIsUsedOnce(t *testing.T) {
	s, _ := store(t)
	code := link(t, s, ReadOnly)
	c, err := s.Login(code, Client{Name: "phone"})
	if err != nil || !c.Session.ReadOnly || c.Token == "" {
		t.Fatalf("login: %+v, %v", c, err)
	}
	if _, err := s.Login(code, Client{}); !errors.Is(err, ErrLink) {
		t.Errorf("second login: %v", err)
	}
	if st, _ := s.Read(); len(st.Links) != 0 {
		t.Error("the link is still there")
	}
}

func TestABrowserHasNoToken(t *testing.T) {
	s, _ := store(t)
	b, _ := s.Login(link(t, s, Everything), Client{Name: "b", Key: "k", Origin: "http://127.0.0.1:1"})
	program, _ := s.Login(link(t, s, Everything), Client{Name: "curl"})
	if b.Token != "" || b.Session.Token != "" || !b.Session.Browser() || program.Session.Browser() {
		t.Errorf("%+v, %+v", b, program)
	}
	for token, ok := range map[string]bool{program.Token: true, "": false, b.Session.ID: false, program.Session.Token: false, "k": false} {
		if _, err := s.ByToken(token); (err == nil) != ok {
			t.Errorf("%q: %v", token, err)
		}
	}
	if n, err := s.EndBrowsers(); n != 1 || err != nil {
		t.Errorf("ended %d, %v", n, err)
	}
	if _, err := s.ByID(b.Session.ID); !errors.Is(err, ErrSession) {
		t.Errorf("the browser's session: %v", err)
	}
	if _, err := s.ByID(program.Session.ID); err != nil {
		t.Errorf("the program's session: %v", err)
	}
}

// The key is made once, and links name it.
func TestTheServersKeyIsKept(t *testing.T) {
	s, _ := store(t)
	one, err := s.Key()
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.Key()
	if err != nil || one.Public() != two.Public() {
		t.Errorf("%s, then %s, %v", one.Public(), two.Public(), err)
	}
	if code := link(t, s, Everything); !strings.HasSuffix(code, "."+one.Print()) {
		t.Errorf("link %s, print %s", code, one.Print())
	}
}

func TestExpiryAndRevocation(t *testing.T) {
	s, now := store(t)
	code := link(t, s, Everything)
	*now = now.Add(LinkTTL + time.Second)
	if _, err := s.Login(code, Client{}); !errors.Is(err, ErrLink) {
		t.Errorf("an expired link: %v", err)
	}
	a, _ := s.Login(link(t, s, Everything), Client{})
	b, _ := s.Login(link(t, s, Everything), Client{})
	if n, err := Open(s.home).Revoke(a.Session.ID); n != 1 || err != nil { // another process
		t.Errorf("revoke: %d, %v", n, err)
	}
	if _, err := s.ByToken(a.Token); !errors.Is(err, ErrSession) {
		t.Errorf("a revoked session: %v", err)
	}
	*now = now.Add(SessionTTL - time.Hour)
	if _, err := s.ByToken(b.Token); err != nil {
		t.Errorf("a session that is used: %v", err)
	}
	*now = now.Add(2 * time.Hour) // it was used
	if _, err := s.ByToken(b.Token); err != nil {
		t.Errorf("a session that was used: %v", err)
	}
	*now = now.Add(SessionTTL + time.Hour)
	if _, err := s.ByToken(b.Token); !errors.Is(err, ErrSession) {
		t.Errorf("an expired session: %v", err)
	}
}

func TestAnswers(t *testing.T) {
	s, now := store(t)
	call := p.CallID{Turn: 1, Response: 2, Index: 3}
	code, err := s.NewAnswer("c", call)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := s.AnswerOf(code); err != nil || a.Call != call || a.Conversation != "c" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := s.AnswerOf(code + "x"); !errors.Is(err, ErrLink) {
		t.Errorf("a wrong code: %v", err)
	}
	*now = now.Add(AnswerTTL + time.Second)
	if _, err := s.AnswerOf(code); !errors.Is(err, ErrLink) {
		t.Errorf("an expired code: %v", err)
	}
}

func TestTheFileHoldsNoSecret(t *testing.T) {
	s, _ := store(t)
	open := link(t, s, Everything)
	c, _ := s.Login(link(t, s, Everything), Client{Name: "b"})
	answer, _ := s.NewAnswer("c", p.CallID{})
	data, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{open, c.Token, answer} {
		if strings.Contains(string(data), secret) {
			t.Errorf("the file holds %q", secret)
		}
	}
	if info, _ := os.Stat(s.path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

// What an earlier version kept at the top of the home, where commands could read it, is moved and goes on being used.
func TestSecretsAreMoved(t *testing.T) {
	home := t.TempDir()
	old := filepath.Join(home, "web.json")
	if err := os.WriteFile(old, []byte(`{"port": 4711, "vapid": {"public": "a", "private": "b"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Open(home)
	st, err := s.Read()
	if err != nil || st.Port != 4711 || st.VAPID == nil || st.VAPID.Private != "b" {
		t.Fatalf("%+v, %v", st, err)
	}
	if err := s.Change(func(st *State) error { st.Port++; return nil }); err != nil {
		t.Fatal(err)
	}
	if st, err := Open(home).Read(); err != nil || st.Port != 4712 {
		t.Errorf("%+v, %v", st, err)
	}
	entries, err := os.ReadDir(home)
	if err != nil || len(entries) != 1 || entries[0].Name() != "keys" {
		t.Errorf("the home holds %v, %v", entries, err)
	}
}
