// Package sqlite reads tables of SQLite databases that other programs wrote: whole tables, row by row, with what
// is only in the write-ahead log. It knows nothing of SQL beyond the names of columns, writes nothing, and
// takes no locks: give it a copy that does not change.
//
// A file may be damaged or made by an attacker: page numbers, sizes and depths are checked, and every
// loop over pages is bounded. See https://www.sqlite.org/fileformat2.html for the format.
package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

const (
	maxDepth   = 40        // of a tree of pages
	maxPayload = 256 << 20 // of one row
)

// ErrFormat is wrapped by the errors of files that are not what they should be.
var ErrFormat = errors.New("not a valid SQLite database")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// A DB is a database that is open for reading. It is used by one goroutine.
type DB struct {
	file     io.ReaderAt
	log      io.ReaderAt
	pageSize int
	usable   int              // of a page
	pages    uint32           // how many there are
	inLog    map[uint32]int64 // where a page is in the log, if it is there
	tables   map[string]table
}

type table struct {
	root    uint32
	columns []string
	key     int // the column that is the row's number, or -1
}

// Open reads the head of a database, of the given size, and its log, which is nil if there is none.
func Open(file io.ReaderAt, size int64, log io.ReaderAt, logSize int64) (*DB, error) {
	db := &DB{file: file, log: log, inLog: map[uint32]int64{}}
	if log != nil {
		if err := db.readLog(logSize); err != nil {
			return nil, err
		}
	}
	if err := db.readHead(size); err != nil {
		return nil, err
	}
	return db, db.readSchema()
}

func (db *DB) readHead(size int64) error {
	head := make([]byte, 100)
	if at, ok := db.inLog[1]; ok {
		if _, err := db.log.ReadAt(head, at); err != nil {
			return err
		}
	} else if _, err := db.file.ReadAt(head, 0); err != nil {
		return invalid("it is %d bytes long", size)
	}
	if string(head[:16]) != "SQLite format 3\x00" {
		return invalid("it does not begin like one")
	}
	pageSize := int(binary.BigEndian.Uint16(head[16:]))
	if pageSize == 1 {
		pageSize = 65536
	}
	if pageSize < 512 || pageSize&(pageSize-1) != 0 || db.pageSize != 0 && pageSize != db.pageSize {
		return invalid("its pages have %d bytes", pageSize)
	}
	if encoding := binary.BigEndian.Uint32(head[56:]); encoding > 1 {
		return errors.New("the database is not in UTF-8")
	}
	db.pageSize, db.usable = pageSize, pageSize-int(head[20])
	if db.usable < 480 {
		return invalid("its pages have no room")
	}
	if n := size / int64(pageSize); db.pages == 0 && n <= math.MaxUint32 {
		db.pages = uint32(n)
	}
	return nil
}

// page reads one page.
func (db *DB) page(n uint32) ([]byte, error) {
	if n == 0 || n > db.pages {
		return nil, invalid("page %d of %d", n, db.pages)
	}
	b := make([]byte, db.pageSize)
	from, at := db.file, int64(n-1)*int64(db.pageSize)
	if in, ok := db.inLog[n]; ok {
		from, at = db.log, in
	}
	if _, err := from.ReadAt(b, at); err != nil {
		return nil, invalid("page %d cannot be read: %v", n, err)
	}
	return b, nil
}

// A Row is one row of a table.
type Row struct {
	values map[string]Value
	at     Place
}

// A Place is where a row is, so that it can be read again.
type Place struct {
	page uint32
	cell int
}

// Place returns where the row is.
func (r Row) Place() Place { return r.at }

// Get returns the value of a column; a column that the table does not have is null.
func (r Row) Get(column string) Value { return r.values[column] }

// A Value is one value of a row: null, a number, or bytes.
type Value struct {
	bytes []byte
	num   int64
	real  float64
}

// Text returns a text, empty if the value is none.
func (v Value) Text() string { return string(v.bytes) }

// Int returns a whole number, 0 if the value is none.
func (v Value) Int() int64 {
	if v.real != 0 {
		return int64(v.real)
	}
	return v.num
}

// Has reports whether there is a table with these columns.
func (db *DB) Has(name string, columns ...string) bool {
	t, ok := db.tables[name]
	for _, c := range columns {
		found := false
		for _, have := range t.columns {
			found = found || have == c
		}
		ok = ok && found
	}
	return ok
}

// Each calls f for every row of a table, in the order of their numbers, with the values of the columns that are
// named. It ends when f returns false.
func (db *DB) Each(name string, columns []string, f func(Row) bool) error {
	t, ok := db.tables[name]
	if !ok {
		return fmt.Errorf("the database has no table %s", name)
	}
	w := &walk{db: db, table: t, columns: columns, each: f, seen: map[uint32]bool{}}
	_, err := w.tree(t.root, 0)
	return err
}

// At reads a row again.
func (db *DB) At(name string, columns []string, at Place) (Row, error) {
	t, ok := db.tables[name]
	if !ok {
		return Row{}, fmt.Errorf("the database has no table %s", name)
	}
	page, err := db.page(at.page)
	if err != nil {
		return Row{}, err
	}
	w := &walk{db: db, table: t, columns: columns}
	return w.row(page, at)
}

// A walk goes over the rows of one table.
type walk struct {
	db      *DB
	table   table
	columns []string
	each    func(Row) bool
	seen    map[uint32]bool
}

const (
	interiorPage = 0x05
	leafPage     = 0x0d
)

// tree goes over a page and those below it. It reports whether to go on.
func (w *walk) tree(n uint32, depth int) (bool, error) {
	if depth > maxDepth || w.seen[n] {
		return false, invalid("its pages go round in a circle at page %d", n)
	}
	w.seen[n] = true
	page, err := w.db.page(n)
	if err != nil {
		return false, err
	}
	head := headOf(page, n)
	cells := int(binary.BigEndian.Uint16(head[3:]))
	switch head[0] {
	case leafPage:
		for i := range cells {
			row, err := w.row(page, Place{n, i})
			if err != nil {
				return false, err
			}
			if !w.each(row) {
				return false, nil
			}
		}
		return true, nil
	case interiorPage:
		for i := range cells {
			at, err := cellAt(page, n, 12, i)
			if err != nil {
				return false, err
			}
			if more, err := w.tree(binary.BigEndian.Uint32(page[at:]), depth+1); err != nil || !more {
				return false, err
			}
		}
		return w.tree(binary.BigEndian.Uint32(head[8:]), depth+1)
	}
	return false, invalid("page %d is not one of a table", n)
}

// headOf is the head of a page; on the first one it stands behind that of the file.
func headOf(page []byte, n uint32) []byte {
	if n == 1 {
		return page[100:]
	}
	return page
}

// cellAt is where a cell begins: the numbers stand behind the head of the page.
func cellAt(page []byte, n uint32, head, i int) (int, error) {
	at := head + 2*i
	if n == 1 {
		at += 100
	}
	if at+2 > len(page) {
		return 0, invalid("page %d has too many cells", n)
	}
	cell := int(binary.BigEndian.Uint16(page[at:]))
	if cell+4 > len(page) {
		return 0, invalid("cell %d of page %d", i, n)
	}
	return cell, nil
}

// row reads the row in a cell of a leaf.
func (w *walk) row(page []byte, at Place) (Row, error) {
	cell, err := cellAt(page, at.page, 8, at.cell)
	if err != nil {
		return Row{}, err
	}
	b := page[cell:]
	size, n := varint(b)
	number, m := varint(b[n:])
	if n == 0 || m == 0 || size < 0 || size > maxPayload {
		return Row{}, invalid("a row of %d bytes on page %d", size, at.page)
	}
	payload, err := w.db.payload(b[n+m:], int(size))
	if err != nil {
		return Row{}, err
	}
	values, err := w.table.decode(payload, w.columns, number)
	return Row{values, at}, err
}

// payload returns all bytes of a row: those on its page, and those on pages of their own.
func (db *DB) payload(local []byte, size int) ([]byte, error) {
	most := db.usable - 35
	if size <= most {
		if size > len(local) {
			return nil, invalid("a row goes beyond its page")
		}
		return local[:size], nil
	}
	least := (db.usable-12)*32/255 - 23
	keep := least + (size-least)%(db.usable-4)
	if keep > most {
		keep = least
	}
	if keep+4 > len(local) {
		return nil, invalid("a row goes beyond its page")
	}
	out := make([]byte, 0, size)
	out = append(out, local[:keep]...)
	for next := binary.BigEndian.Uint32(local[keep:]); len(out) < size; {
		page, err := db.page(next)
		if err != nil {
			return nil, err
		}
		next = binary.BigEndian.Uint32(page)
		out = append(out, page[4:min(db.usable, 4+size-len(out))]...)
	}
	return out, nil
}

// varint reads a number of one to nine bytes, and returns how many there were; 0 if it is not whole.
func varint(b []byte) (int64, int) {
	var v uint64
	for i := range min(len(b), 9) {
		if i == 8 {
			return int64(v<<8 | uint64(b[i])), 9
		}
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return int64(v), i + 1
		}
	}
	return 0, 0
}
