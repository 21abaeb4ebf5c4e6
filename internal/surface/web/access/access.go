// Package access says who may use the page: links, which are used once, and the sessions that they
// open. What it keeps in its file are hashes: who can read the file cannot get in.
//
// Each call reads the file, and changes it under a lock between processes: so that a session that
// another process revokes is refused with the next request. Start with [Store.Login].
package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/secrets"
	p "github.com/fermata-agent/fermata/protocol"
)

// What is refused.
var (
	ErrLink    = errors.New("the link is not valid: it was used, has expired or was revoked")
	ErrSession = errors.New("the session is not valid: it has expired or was revoked")
)

// How long things are valid.
const (
	LinkTTL    = 10 * time.Minute
	SessionTTL = 30 * 24 * time.Hour // from when it was last used
	AnswerTTL  = 24 * time.Hour
	usedEvery  = time.Hour // how often the use of a session is recorded
)

// A Session is a browser or a program that has used a link.
type Session struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"` // what it said of itself
	Created  time.Time `json:"created"`
	Used     time.Time `json:"used"`
	ReadOnly bool      `json:"read_only,omitempty"`
	Browser  bool      `json:"browser,omitempty"` // it needs its cookie, too
	Token    string    `json:"token_hash"`
	Cookie   string    `json:"cookie_hash,omitempty"`
}

// A Link opens one session.
type Link struct {
	ID       string    `json:"id"`
	Expires  time.Time `json:"expires"`
	ReadOnly bool      `json:"read_only,omitempty"`
	Code     string    `json:"code_hash"`
}

// An Answer lets whoever has its code answer one approval.
type Answer struct {
	Conversation p.ConversationID `json:"conversation"`
	Call         p.CallID         `json:"call"`
	Expires      time.Time        `json:"expires"`
	Code         string           `json:"code_hash"`
}

// A PushClient is a browser that wants to be notified.
type PushClient struct {
	Session  string `json:"session"` // it ends with this one
	Endpoint string `json:"endpoint"`
	Auth     string `json:"auth"`
	P256dh   string `json:"p256dh"`
}

// A State is all that the file holds.
type State struct {
	Sessions []Session    `json:"sessions"`
	Links    []Link       `json:"links"`
	Answers  []Answer     `json:"answers,omitempty"`
	Push     []PushClient `json:"push,omitempty"`
	Port     int          `json:"port,omitempty"`   // where it was served last, so that pages find it again
	Origin   string       `json:"origin,omitempty"` // what links begin with
	VAPID    *VAPID       `json:"vapid,omitempty"`
}

// VAPID are the keys by which push services know this server.
type VAPID struct {
	Public  string `json:"public"`
	Private string `json:"private"`
}

// A Store is the file. Its methods may be called from any goroutine.
type Store struct {
	home string
	path string
	now  func() time.Time
}

// Open returns the store of a home directory. Nothing is read yet.
func Open(home string) *Store {
	return &Store{home, filepath.Join(home, secretDir, "web.json"), time.Now}
}

// secretDir is the directory of a home that commands cannot look into, whatever is replaced there.
const secretDir = "keys"

// ReadSecret reads a file with secrets of the page. One from where earlier versions had it, at the top of the home, is
// moved first. It returns the file's place, too.
func ReadSecret(home, name string) (file string, text []byte, err error) {
	file = filepath.Join(home, secretDir, name)
	text, err = secrets.Home(home).Read(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, text, err
	}
	old := filepath.Join(home, name)
	if _, gone := os.Lstat(old); gone != nil {
		return file, nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return file, nil, err
	}
	if err := os.Rename(old, file); err != nil {
		return file, nil, err
	}
	text, err = secrets.Home(home).Read(file)
	return file, text, err
}

// Read returns what is valid now.
func (s *Store) Read() (State, error) {
	var st State
	_, data, err := ReadSecret(s.home, filepath.Base(s.path))
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &st)
	}
	if err != nil {
		return State{}, fmt.Errorf("read %s: %w", s.path, err)
	}
	st.expire(s.now())
	return st, nil
}

// expire drops what is not valid any more.
func (st *State) expire(now time.Time) {
	st.Links = slices.DeleteFunc(st.Links, func(l Link) bool { return now.After(l.Expires) })
	st.Answers = slices.DeleteFunc(st.Answers, func(a Answer) bool { return now.After(a.Expires) })
	st.Sessions = slices.DeleteFunc(st.Sessions, func(s Session) bool { return now.Sub(s.Used) > SessionTTL })
	st.Push = slices.DeleteFunc(st.Push, func(c PushClient) bool {
		return !slices.ContainsFunc(st.Sessions, func(s Session) bool { return s.ID == c.Session })
	})
}

// Change changes the file. If change returns an error, nothing is written.
func (s *Store) Change(change func(*State) error) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(s.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // releases it
	for {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", s.path, err)
	}
	st, err := s.Read()
	if err != nil {
		return err
	}
	if err := change(&st); err != nil {
		return err
	}
	return s.write(st)
}

func (s *Store) write(st State) error {
	data, err := json.MarshalIndent(st, "", "\t")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), ".web-*") // has mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(data, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	return os.Rename(f.Name(), s.path)
}

// secret makes a code that cannot be guessed, and its hash.
func secret() (code, hash string) {
	var b [32]byte
	rand.Read(b[:]) // never fails
	code = base64.RawURLEncoding.EncodeToString(b[:])
	return code, hashOf(code)
}

func hashOf(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

func matches(hash, code string) bool {
	return code != "" && subtle.ConstantTimeCompare([]byte(hash), []byte(hashOf(code))) == 1
}

// name makes a short name for people.
func name() string {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Rights say what a link allows.
type Rights int

// The rights.
const (
	Everything Rights = iota
	ReadOnly
)

// NewLink makes a link, and returns its code.
func (s *Store) NewLink(r Rights) (code string, err error) {
	code, hash := secret()
	return code, s.Change(func(st *State) error {
		st.Links = append(st.Links, Link{ID: name(), Expires: s.now().Add(LinkTTL), ReadOnly: r == ReadOnly, Code: hash})
		return nil
	})
}

// HasLink reports whether the code is that of a valid link, which it leaves valid.
func (s *Store) HasLink(code string) bool {
	st, err := s.Read()
	return err == nil && slices.ContainsFunc(st.Links, func(l Link) bool { return matches(l.Code, code) })
}

// A Client is who uses a link.
type Client struct {
	Name    string
	Browser bool
}

// Credentials are what a session identifies itself by.
type Credentials struct {
	Session Session
	Token   string
	Cookie  string // for browsers
}

// Login opens a session with a link, which is used up by that.
func (s *Store) Login(code string, c Client) (Credentials, error) {
	var out Credentials
	err := s.Change(func(st *State) error {
		i := slices.IndexFunc(st.Links, func(l Link) bool { return matches(l.Code, code) })
		if i < 0 {
			return ErrLink
		}
		now := s.now()
		out.Session = Session{ID: name(), Name: c.Name, Created: now, Used: now, ReadOnly: st.Links[i].ReadOnly, Browser: c.Browser}
		out.Token, out.Session.Token = secret()
		if c.Browser {
			out.Cookie, out.Session.Cookie = secret()
		}
		st.Links = slices.Delete(st.Links, i, i+1)
		st.Sessions = append(st.Sessions, out.Session)
		return nil
	})
	return out, err
}

// Check returns the session of a token. A browser's needs its cookie as well.
func (s *Store) Check(token, cookie string) (Session, error) {
	st, err := s.Read()
	if err != nil {
		return Session{}, err
	}
	for _, x := range st.Sessions {
		if !matches(x.Token, token) || x.Browser && !matches(x.Cookie, cookie) {
			continue
		}
		if s.now().Sub(x.Used) > usedEvery {
			_ = s.used(x.ID) // it is for people, and for the session's end in a month
		}
		return x, nil
	}
	return Session{}, ErrSession
}

// KnowsCookie reports whether a cookie is that of a session. That alone allows nothing.
func (s *Store) KnowsCookie(cookie string) bool {
	st, err := s.Read()
	return err == nil && slices.ContainsFunc(st.Sessions, func(x Session) bool { return x.Browser && matches(x.Cookie, cookie) })
}

func (s *Store) used(id string) error {
	return s.Change(func(st *State) error {
		for i := range st.Sessions {
			if st.Sessions[i].ID == id {
				st.Sessions[i].Used = s.now()
			}
		}
		return nil
	})
}

// Revoke ends the session or link with an id; "all" is all of them. It returns how many there were.
func (s *Store) Revoke(id string) (n int, err error) {
	err = s.Change(func(st *State) error {
		before := len(st.Sessions) + len(st.Links)
		st.Sessions = slices.DeleteFunc(st.Sessions, func(x Session) bool { return id == "all" || x.ID == id })
		st.Links = slices.DeleteFunc(st.Links, func(l Link) bool { return id == "all" || l.ID == id })
		if id == "all" {
			st.Answers = nil
		}
		n = before - len(st.Sessions) - len(st.Links)
		st.expire(s.now())
		return nil
	})
	return n, err
}

// NewAnswer makes a code by which one approval can be answered.
func (s *Store) NewAnswer(id p.ConversationID, call p.CallID) (code string, err error) {
	code, hash := secret()
	return code, s.Change(func(st *State) error {
		st.Answers = append(st.Answers, Answer{id, call, s.now().Add(AnswerTTL), hash})
		return nil
	})
}

// AnswerOf returns the approval that a code is for.
func (s *Store) AnswerOf(code string) (Answer, error) {
	st, err := s.Read()
	if err != nil {
		return Answer{}, err
	}
	for _, a := range st.Answers {
		if matches(a.Code, code) {
			return a, nil
		}
	}
	return Answer{}, ErrLink
}
