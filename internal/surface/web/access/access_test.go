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
	if !s.HasLink(code) || s.HasLink("x") || s.HasLink("") {
		t.Error("HasLink is wrong")
	}
	c, err := s.Login(code, Client{"phone", true})
	if err != nil || !c.Session.ReadOnly || c.Token == "" || c.Cookie == "" {
		t.Fatalf("login: %+v, %v", c, err)
	}
	if _, err := s.Login(code, Client{}); !errors.Is(err, ErrLink) {
		t.Errorf("second login: %v", err)
	}
	if s.HasLink(code) {
		t.Error("the link is still there")
	}
}

func TestABrowserNeedsTokenAndCookie(t *testing.T) {
	s, _ := store(t)
	b, _ := s.Login(link(t, s, Everything), Client{"b", true})
	other, _ := s.Login(link(t, s, Everything), Client{"o", true})
	program, _ := s.Login(link(t, s, Everything), Client{"curl", false})
	for _, tt := range []struct {
		name, token, cookie string
		ok                  bool
	}{
		{"both", b.Token, b.Cookie, true},
		{"token alone", b.Token, "", false},
		{"cookie alone", "", b.Cookie, false},
		{"cookie as token", b.Cookie, b.Cookie, false},
		{"another's cookie", b.Token, other.Cookie, false},
		{"nothing", "", "", false},
		{"a program's token", program.Token, "", true},
		{"the hash", b.Session.Token, b.Session.Cookie, false},
	} {
		if _, err := s.Check(tt.token, tt.cookie); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if !s.KnowsCookie(b.Cookie) || s.KnowsCookie("") || s.KnowsCookie(program.Token) {
		t.Error("KnowsCookie is wrong")
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
	if _, err := s.Check(a.Token, ""); !errors.Is(err, ErrSession) {
		t.Errorf("a revoked session: %v", err)
	}
	*now = now.Add(SessionTTL - time.Hour)
	if _, err := s.Check(b.Token, ""); err != nil {
		t.Errorf("a session that is used: %v", err)
	}
	*now = now.Add(2 * time.Hour) // it was used
	if _, err := s.Check(b.Token, ""); err != nil {
		t.Errorf("a session that was used: %v", err)
	}
	*now = now.Add(SessionTTL + time.Hour)
	if _, err := s.Check(b.Token, ""); !errors.Is(err, ErrSession) {
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
	c, _ := s.Login(link(t, s, Everything), Client{"b", true})
	answer, _ := s.NewAnswer("c", p.CallID{})
	data, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{open, c.Token, c.Cookie, answer} {
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
