// Package layout says what the files and directories of conversations are called, and where they are.
package layout

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
)

// The name of a journal is the time at which the conversation began, a hyphen, its id, and the suffix.
const (
	Form   = "2006-01-02T15-04-05"
	Suffix = ".jsonl"
)

// Journal is where the journal of a conversation that started then lives
// under root.
func Journal(root, id string, at time.Time) string {
	return filepath.Join(Day(root, at), at.UTC().Format(Form)+"-"+id+Suffix)
}

// Day is the directory below root of the conversations that started on a day.
func Day(root string, at time.Time) string {
	return filepath.Join(root, filepath.FromSlash(at.UTC().Format("2006/01/02")))
}

// ID takes the id out of a journal's file name. File systems and programs that know no lower case may have
// changed the name: it is the same conversation.
func ID(name string) (string, bool) {
	n := len(name) - len(Suffix)
	if n < len(Form)+2 || !strings.EqualFold(name[n:], Suffix) || name[len(Form)] != '-' {
		return "", false
	}
	if !startsWithTime(name) {
		return "", false
	}
	id := name[len(Form)+1 : n]
	if lower := strings.ToLower(id); lower != id {
		if _, ok := Time(lower); ok {
			id = lower
		}
	}
	return id, journal.ValidID(id)
}

// startsWithTime reports whether Start finds a time. A list asks it of every conversation there is.
func startsWithTime(name string) bool {
	var n [6]int // year to second
	at := 0
	for i, size := range [...]int{4, 2, 2, 2, 2, 2} {
		for range size {
			d := int(name[at]) - '0'
			if d < 0 || d > 9 {
				return false
			}
			n[i] = 10*n[i] + d
			at++
		}
		if sep := Form[at%len(Form)]; i < 5 && name[at] != sep && (sep != 'T' || name[at] != 't') {
			return false
		}
		at++
	}
	if n[1] < 1 || n[1] > 12 || n[2] < 1 || n[3] > 23 || n[4] > 59 || n[5] > 59 {
		return false
	}
	return n[2] <= 28 || time.Date(n[0], time.Month(n[1]), n[2], 0, 0, 0, 0, time.UTC).Day() == n[2]
}

// Start takes the time out of the name of a journal, or of a file beside it.
func Start(name string) (time.Time, bool) {
	if len(name) < len(Form) {
		return time.Time{}, false
	}
	at, err := time.Parse(Form, strings.ToUpper(name[:len(Form)]))
	return at, err == nil
}

// Time takes the time out of a UUIDv7.
func Time(id string) (time.Time, bool) {
	hex := strings.ReplaceAll(id, "-", "")
	if len(hex) != 32 || hex[12] != '7' {
		return time.Time{}, false
	}
	ms, err := strconv.ParseInt(hex[:12], 16, 64)
	if err != nil {
		return time.Time{}, false
	}
	return time.UnixMilli(ms), true
}

// AreOfStore reports whether the entries of a directory can be those of a directory of the store. An empty one is about to become one; the
// root of a disk may have lost+found and hidden files.
func AreOfStore(entries []fs.DirEntry) bool {
	others := 0
	for _, e := range entries {
		name := e.Name()
		if _, ok := Start(name); ok || IsDate(name) {
			return true
		}
		if name != "lost+found" && !strings.HasPrefix(name, ".") {
			others++
		}
	}
	return others == 0
}

// IsTimed reports whether an id is one that fermata makes: a directory that is called so is in the place of a journal.
func IsTimed(id string) bool {
	_, ok := Time(id)
	return ok
}

// IsDate reports whether a name can be that of a year, a month or a day.
func IsDate(name string) bool {
	return name != "" && len(name) <= len("2006") && strings.Trim(name, "0123456789") == ""
}
