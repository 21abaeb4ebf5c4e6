package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/foreign/sqlite"
)

func sample(t testing.TB, withLog bool) ([]byte, []byte) {
	t.Helper()
	db, err := os.ReadFile("testdata/sample.db")
	if err != nil {
		t.Fatal(err)
	}
	if !withLog {
		return db, nil
	}
	log, err := os.ReadFile("testdata/sample.db-wal")
	if err != nil {
		t.Fatal(err)
	}
	return db, log
}

func open(db, log []byte) (*sqlite.DB, error) {
	if log == nil {
		return sqlite.Open(bytes.NewReader(db), int64(len(db)), nil, 0)
	}
	return sqlite.Open(bytes.NewReader(db), int64(len(db)), bytes.NewReader(log), int64(len(log)))
}

// sessions reads a table as text, one row a line.
func sessions(t *testing.T, d *sqlite.DB) map[string]string {
	t.Helper()
	rows := map[string]string{}
	columns := []string{"id", "n", "x", "data", "late"}
	err := d.Each("session", columns, func(r sqlite.Row) bool {
		again, err := d.At("session", columns, r.Place())
		if err != nil || again.Get("data").Text() != r.Get("data").Text() {
			t.Errorf("row %s read again: %v", r.Get("id").Text(), err)
		}
		rows[r.Get("id").Text()] = fmt.Sprint(r.Get("n").Int(), " ", len(r.Get("data").Text()), " ", r.Get("late").Text())
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestRows(t *testing.T) {
	for _, withLog := range []bool{false, true} {
		d, err := open(sample(t, withLog))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for i, n := 0, 1; i < 60; i, n = i+1, n*-7 {
			if i%20 == 0 {
				n = 1
			}
			want[fmt.Sprintf("s%03d", i)] = fmt.Sprint(n, " ", i*25, " ")
		}
		if withLog {
			want["s007"], want["new"] = strings.Replace(want["s007"], " 175 ", " 7 ", 1), "1 3000 "
		}
		got := sessions(t, d)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("with the log %t: rows\n%v\nwant\n%v", withLog, got, want)
		}
		if d.Has("session", "late") != withLog {
			t.Errorf("with the log %t: column late is there: %t", withLog, d.Has("session", "late"))
		}
		var numbers []int64
		if err := d.Each("num", []string{"id"}, func(r sqlite.Row) bool { numbers = append(numbers, r.Get("id").Int()); return true }); err != nil || fmt.Sprint(numbers) != "[1 5 300]" {
			t.Errorf("numbers of rows %v, %v", numbers, err)
		}
	}
}

func TestNoDatabase(t *testing.T) {
	db, _ := sample(t, false)
	circle := bytes.Clone(db)
	circle[512*2-512+0] = 0 // the second page is of no kind
	for name, file := range map[string][]byte{
		"empty": nil, "short": db[:50], "another file": bytes.Repeat([]byte("x"), 4096), "cut off": db[:600], "no kind": circle,
	} {
		d, err := open(file, nil)
		if err == nil {
			err = d.Each("session", []string{"id"}, func(sqlite.Row) bool { return true })
		}
		if !errors.Is(err, sqlite.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a file holds, reading it ends, with rows or an error.
func FuzzOpen(f *testing.F) {
	db, log := sample(f, true)
	f.Add(db[:4096], log[:4096], 3000, byte(7))
	f.Add(db, log, 100, byte(255))
	f.Fuzz(func(t *testing.T, db, log []byte, at int, value byte) {
		if len(db) > 1<<20 || len(log) > 1<<20 {
			return
		}
		if at >= 0 && at < len(db) {
			db = bytes.Clone(db)
			db[at] = value
		}
		d, err := open(db, log)
		if err != nil {
			return
		}
		rows := 0
		for _, name := range []string{"session", "num"} {
			_ = d.Each(name, []string{"id", "n", "x", "data"}, func(r sqlite.Row) bool {
				_ = r.Get("data").Text() + fmt.Sprint(r.Get("n").Int())
				rows++
				return true
			})
		}
		if rows > len(db)+len(log) {
			t.Errorf("%d rows in %d bytes", rows, len(db)+len(log))
		}
	})
}
