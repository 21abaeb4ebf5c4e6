// Package access says who may use the page: links, which are used once, and the sessions that they
// open. What it keeps in its file of links and sessions are hashes and public keys: who can read them cannot get in. The
// server's own private keys are there as well.
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
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/regular"
	"github.com/fermata-agent/fermata/internal/secrets"
	"github.com/fermata-agent/fermata/internal/surface/web/proof"
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
	Token    string    `json:"token_hash,omitempty"` // of a program
	Key      string    `json:"key,omitempty"`        // of a browser: its public key, by which it signs its requests
	Origin   string    `json:"origin,omitempty"`     // of a browser: where it logged in, and nowhere else is it known
}

// Browser reports whether it signs its requests. A program has a token.
func (s Session) Browser() bool { return s.Key != "" }

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
	Key      string       `json:"key,omitempty"` // the server's own private key
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
	st.Sessions = slices.DeleteFunc(st.Sessions, func(s Session) bool {
		return now.Sub(s.Used) > SessionTTL || s.Key == "" && s.Token == "" // neither: of a page of an earlier version
	})
	st.Push = slices.DeleteFunc(st.Push, func(c PushClient) bool {
		return !slices.ContainsFunc(st.Sessions, func(s Session) bool { return s.ID == c.Session })
	})
}

// Change changes the file. If change returns an error, nothing is written.
func (s *Store) Change(change func(*State) error) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	lock, err := regular.OpenFile(s.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
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
	if err := regular.Replace(s.path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	return nil
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

// printMark is between the code of a link and the print of the server's key, which the page compares before it
// sends the code.
const printMark = "."

// NewLink makes a link, and returns its code with the print of the server's key.
func (s *Store) NewLink(r Rights) (code string, err error) {
	key, err := s.Key()
	if err != nil {
		return "", err
	}
	code, hash := secret()
	return code + printMark + key.Print(), s.Change(func(st *State) error {
		st.Links = append(st.Links, Link{ID: name(), Expires: s.now().Add(LinkTTL), ReadOnly: r == ReadOnly, Code: hash})
		return nil
	})
}

// A Client is who uses a link.
type Client struct {
	Name   string
	Key    string // a browser's public key; empty for a program, which gets a token
	Origin string // with Key: where it logs in
}

// Credentials are what a session identifies itself by.
type Credentials struct {
	Session Session
	Token   string // for programs
}

// Login opens a session with a link, which is used up by that.
func (s *Store) Login(code string, c Client) (Credentials, error) {
	code, _, _ = strings.Cut(code, printMark)
	var out Credentials
	err := s.Change(func(st *State) error {
		i := slices.IndexFunc(st.Links, func(l Link) bool { return matches(l.Code, code) })
		if i < 0 {
			return ErrLink
		}
		now := s.now()
		out.Session = Session{ID: name(), Name: c.Name, Created: now, Used: now, ReadOnly: st.Links[i].ReadOnly}
		if c.Key != "" {
			out.Session.Key, out.Session.Origin = c.Key, c.Origin
		} else {
			out.Token, out.Session.Token = secret()
		}
		st.Links = slices.Delete(st.Links, i, i+1)
		st.Sessions = append(st.Sessions, out.Session)
		return nil
	})
	return out, err
}

// ByToken returns the session of a program.
func (s *Store) ByToken(token string) (Session, error) {
	return s.session(func(x Session) bool { return !x.Browser() && matches(x.Token, token) })
}

// ByID returns a session. Its id is no secret: whoever names it has to show that it is theirs.
func (s *Store) ByID(id string) (Session, error) {
	return s.session(func(x Session) bool { return x.ID == id })
}

func (s *Store) session(is func(Session) bool) (Session, error) {
	st, err := s.Read()
	if err != nil {
		return Session{}, err
	}
	i := slices.IndexFunc(st.Sessions, is)
	if i < 0 {
		return Session{}, ErrSession
	}
	x := st.Sessions[i]
	if s.now().Sub(x.Used) > usedEvery {
		_ = s.used(x.ID) // it is for people, and for the session's end in a month
	}
	return x, nil
}

// Key returns the server's own key, which it makes the first time.
func (s *Store) Key() (proof.Key, error) {
	st, err := s.Read()
	if err != nil {
		return proof.Key{}, err
	}
	if st.Key == "" {
		err = s.Change(func(now *State) error {
			if now.Key == "" {
				key, err := proof.NewKey()
				if err != nil {
					return err
				}
				if now.Key, err = key.Text(); err != nil {
					return err
				}
			}
			st.Key = now.Key
			return nil
		})
		if err != nil {
			return proof.Key{}, err
		}
	}
	return proof.ReadKey(st.Key)
}

// EndBrowsers ends the sessions of all browsers: what they are told to trust may not be ours any more.
func (s *Store) EndBrowsers() (n int, err error) {
	err = s.Change(func(st *State) error {
		n = len(st.Sessions)
		st.Sessions = slices.DeleteFunc(st.Sessions, Session.Browser)
		n -= len(st.Sessions)
		st.expire(s.now())
		return nil
	})
	return n, err
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
