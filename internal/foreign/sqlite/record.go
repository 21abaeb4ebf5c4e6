package sqlite

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// decode reads the values of some columns out of a record.
func (t table) decode(record []byte, columns []string, number int64) (map[string]Value, error) {
	size, n := varint(record)
	if n == 0 || size < int64(n) || size > int64(len(record)) {
		return nil, invalid("a record without a head")
	}
	head, body := record[n:size], record[size:]
	values := make(map[string]Value, len(columns))
	for i := 0; len(head) > 0 && i < len(t.columns); i++ {
		kind, n := varint(head)
		if n == 0 || kind < 0 {
			return nil, invalid("a record's head is not whole")
		}
		head = head[n:]
		length := width(kind)
		if length > int64(len(body)) {
			return nil, invalid("a value of %d bytes goes beyond its record", length)
		}
		if name := t.columns[i]; slices.Contains(columns, name) {
			values[name] = valueOf(kind, body[:length])
			if i == t.key && kind == 0 {
				values[name] = Value{num: number}
			}
		}
		body = body[length:]
	}
	return values, nil
}

// width is how many bytes a value of a kind has.
func width(kind int64) int64 {
	switch {
	case kind >= 12:
		return (kind - 12) / 2
	case kind <= 4:
		return kind
	case kind == 5:
		return 6
	case kind == 6 || kind == 7:
		return 8
	}
	return 0
}

func valueOf(kind int64, b []byte) Value {
	switch {
	case kind >= 12:
		return Value{bytes: b}
	case kind == 7:
		return Value{real: math.Float64frombits(binary.BigEndian.Uint64(b))}
	case kind == 9:
		return Value{num: 1}
	case kind == 0 || kind >= 8:
		return Value{}
	}
	n := int64(int8(b[0]))
	for _, x := range b[1:] {
		n = n<<8 | int64(x)
	}
	return Value{num: n}
}

// readSchema finds the tables and the names of their columns.
func (db *DB) readSchema() error {
	db.tables = map[string]table{"sqlite_schema": {root: 1, columns: []string{"type", "name", "tbl_name", "rootpage", "sql"}, key: -1}}
	tables := map[string]table{}
	err := db.Each("sqlite_schema", []string{"type", "name", "rootpage", "sql"}, func(r Row) bool {
		root := r.Get("rootpage").Int()
		if r.Get("type").Text() == "table" && root > 0 && root <= math.MaxUint32 {
			columns, key := columnsOf(r.Get("sql").Text())
			tables[r.Get("name").Text()] = table{uint32(root), columns, key}
		}
		return true
	})
	db.tables = tables
	return err
}

// columnsOf reads the names of the columns out of a CREATE TABLE statement, and which of them is another name for the row's number.
func columnsOf(sql string) (names []string, key int) {
	key = -1
	_, rest, ok := strings.Cut(sql, "(")
	if !ok {
		return nil, key
	}
	for _, part := range splitTop(rest) {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		switch strings.ToUpper(words[0]) {
		case "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT":
			continue
		}
		if strings.Contains(strings.ToUpper(part), " INTEGER PRIMARY KEY") {
			key = len(names)
		}
		names = append(names, strings.Trim(words[0], "`\"'[]"))
	}
	return names, key
}

// splitTop splits the inside of a statement at the commas that are not within parentheses or quotes, up to its end.
func splitTop(s string) []string {
	var parts []string
	depth, start := 0, 0
	var quote rune
	for i, r := range s {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"' || r == '`':
			quote = r
		case r == '(':
			depth++
		case r == ')':
			if depth == 0 {
				return append(parts, s[start:i])
			}
			depth--
		case r == ',' && depth == 0:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}
