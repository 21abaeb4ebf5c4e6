// Package format is how records and pieces of open items are written as lines of a file, and how a file is taken apart into
// such lines again, whatever was done to it. Start with [AppendRecord] and [Scanner].
package format

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"hash/crc32"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/journal"
)

// A line of the file is a record or a piece of an open item:
//
//	{"n":12,"t":"2026-11-15T11:41:54.123456Z","turn":3,"kind":"tool_output","closes":"3.1.0","body":{…},"of":"5a17c0de","prev":"00c0ffee","sum":"9ae1f00d"}
//	{"item":"3.1.0","tag":"stdout","at":123,"text":"…","of":"5a17c0de","prev":"9ae1f00d","sum":"5c0ffee1"}
//
// The members always come in this order, closes may be missing. sum is the
// CRC-32C of the bytes before `,"sum"`; so a line can be checked and its number read
// without decoding JSON. of is the CRC-32C of the conversation's id, prev the sum of
// the record that its writer wrote before (of the first record: of). So lines of
// another conversation, and of two writers, can be distinguished. Where a text is not
// UTF-8, there is "bytes" in base64 instead. Lines of earlier
// versions have neither.
//
// A space before the body says that the next record is of the same batch, which is there whole or
// not at all. (Versions that do not know this read the line as they always did.)
const (
	timeForm   = "2006-01-02T15:04:05.000000Z"
	ofPrefix   = `,"of":"`
	prevPrefix = `","prev":"`
	linkBytes  = len(ofPrefix) + 8 + len(prevPrefix) + 8 + len(`"`)
	sumPrefix  = `,"sum":"`
	sumBytes   = len(sumPrefix) + 8 + len(`"}`)
	LineBytes  = 64 // no record is shorter
)

// A Link says where a line belongs.
type Link struct {
	Of   uint32 // sum of the conversation's id
	Prev uint32 // sum of the record before
}

// IDSum is what the lines of a conversation have as of.
func IDSum(id string) uint32 { return Checksum([]byte(id)) }

const (
	KindDamaged = "damaged"              // a record that stands for a lost one
	kindStarted = "conversation_started" // the first record, which names the conversation
)

func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli()) }

// castagnoli is not made when the program starts: a shim, which each command has, needs none.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// AppendRecord appends a record's line, and returns its sum.
func AppendRecord(b []byte, e *journal.Pending, l Link) ([]byte, uint32) {
	from := len(b)
	b = append(b, `{"n":`...)
	b = strconv.AppendUint(b, e.Seq, 10)
	b = append(b, `,"t":"`...)
	b = e.Time.AppendFormat(b, timeForm)
	b = append(b, `","turn":`...)
	b = strconv.AppendInt(b, int64(e.Turn), 10)
	b = append(b, `,"kind":`...)
	b = AppendString(b, e.Kind)
	if e.Closes != "" {
		b = append(b, `,"closes":`...)
		b = AppendString(b, e.Closes)
	}
	b = append(b, `,"body":`...)
	if e.More {
		b = append(b, ' ')
	}
	b = append(b, e.Body...)
	return appendEnd(b, from, l)
}

// AppendProgress appends a line with a piece of an open item.
func AppendProgress(b []byte, name string, p journal.Piece, l Link) []byte {
	from := len(b)
	b = append(b, `{"item":`...)
	b = AppendString(b, name)
	b = append(b, `,"tag":`...)
	b = AppendString(b, p.Tag)
	b = append(b, `,"at":`...)
	b = strconv.AppendInt(b, p.Offset, 10)
	if utf8.Valid(p.Text) {
		b = append(b, `,"text":`...)
		b = AppendString(b, p.Text)
	} else {
		b = append(b, `,"bytes":"`...)
		b = base64.StdEncoding.AppendEncode(b, p.Text)
		b = append(b, '"')
	}
	b, _ = appendEnd(b, from, l)
	return b
}

// appendEnd appends the link and the sum of the line that began there.
func appendEnd(b []byte, from int, l Link) ([]byte, uint32) {
	b = append(b, ofPrefix...)
	b = AppendHex(b, l.Of)
	b = append(b, prevPrefix...)
	b = AppendHex(b, l.Prev)
	b = append(b, '"')
	sum := Checksum(b[from:])
	b = append(b, sumPrefix...)
	b = AppendHex(b, sum)
	return append(b, '"', '}', '\n'), sum
}

func AppendHex(b []byte, sum uint32) []byte {
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[sum>>shift&15])
	}
	return b
}

// A LineKind is what a line turned out to be.
type LineKind uint8

const (
	BadLine LineKind = iota
	RecordLine
	ProgressLine
	ForeignLine // a good one, of another conversation
)

// A Line is a line taken apart but not decoded: the slices point into it.
type Line struct {
	Kind   LineKind
	Sum    uint32
	Linked bool // there is a link
	Link

	Seq       uint64 // of a record
	time      []byte
	turn      int64
	Name      []byte // its kind
	Closes    []byte
	More      bool // the next record is of the same batch
	body      []byte
	Item, tag []byte // of a piece of an open item
	at        int64
	text      []byte
	binary    bool // text is base64
}

// ParseLine takes a line without its line break apart. Its checksum is right if
// it is not a badLine.
func ParseLine(b []byte) Line {
	n := len(b) - sumBytes
	if n < 0 || !bytes.HasPrefix(b[n:], []byte(sumPrefix)) || b[len(b)-2] != '"' || b[len(b)-1] != '}' {
		return Line{}
	}
	sum := Checksum(b[:n])
	var hex [8]byte
	if !bytes.Equal(AppendHex(hex[:0], sum), b[n+len(sumPrefix):len(b)-2]) {
		return Line{}
	}

	l := Line{Sum: sum}
	p := parser{rest: l.takeLink(b[:n]), ok: true}
	if p.skip(`{"n":`) {
		p.record(&l)
	} else if p.skip(`{"item":`) {
		p.progress(&l)
	}
	if !p.ok {
		return Line{}
	}
	return l
}

// takeLink takes the link off the end of a line, if there is one. It cannot be
// mistaken for a part of what is before it, which ends in a whole JSON value.
func (l *Line) takeLink(b []byte) []byte {
	n := len(b) - linkBytes
	if n < 0 || b[len(b)-1] != '"' {
		return b
	}
	end := b[n:]
	of, ok := bytes.CutPrefix(end, []byte(ofPrefix))
	if !ok || !bytes.HasPrefix(of[8:], []byte(prevPrefix)) {
		return b
	}
	first, ok := parseHex(of[:8])
	second, also := parseHex(of[8+len(prevPrefix) : len(of)-1])
	if !ok || !also {
		return b
	}
	l.Linked, l.Link = true, Link{Of: first, Prev: second}
	return b[:n]
}

// parseHex takes the form that appendHex writes.
func parseHex(b []byte) (n uint32, ok bool) {
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | uint32(c-'0')
		case 'a' <= c && c <= 'f':
			n = n<<4 | uint32(c-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// A parser takes the fixed members of a line in order.
type parser struct {
	rest []byte
	ok   bool
}

func (p *parser) record(l *Line) {
	l.Kind = RecordLine
	n := p.int()
	l.Seq = uint64(n)
	p.want(`,"t":`)
	l.time = p.quoted()
	p.want(`,"turn":`)
	l.turn = p.int()
	p.want(`,"kind":`)
	l.Name = p.quoted()
	if p.skip(`,"closes":`) {
		l.Closes = p.quoted()
	}
	p.want(`,"body":`)
	l.More = p.skip(" ")
	l.body = p.rest
	p.ok = p.ok && n > 0 && len(l.body) > 0 && len(l.time) == len(timeForm)
}

func (p *parser) progress(l *Line) {
	l.Kind = ProgressLine
	l.Item = p.quoted()
	p.want(`,"tag":`)
	l.tag = p.quoted()
	p.want(`,"at":`)
	l.at = p.int()
	if l.binary = p.skip(`,"bytes":`); !l.binary {
		p.want(`,"text":`)
	}
	l.text = p.quoted()
	p.ok = p.ok && l.at >= 0 && len(p.rest) == 0
}

func (p *parser) skip(s string) bool {
	if len(p.rest) < len(s) || string(p.rest[:len(s)]) != s {
		return false
	}
	p.rest = p.rest[len(s):]
	return true
}

func (p *parser) want(s string) { p.ok = p.skip(s) && p.ok }

// int takes a number of at most 18 digits, so that it and sums of it stay in range.
func (p *parser) int() int64 {
	negative := p.skip("-")
	var v int64
	i := 0
	for i < len(p.rest) && '0' <= p.rest[i] && p.rest[i] <= '9' {
		if i < 18 {
			v = v*10 + int64(p.rest[i]-'0')
		}
		i++
	}
	p.ok = p.ok && 0 < i && i <= 18
	p.rest = p.rest[i:]
	if negative {
		return -v
	}
	return v
}

// quoted takes a JSON string and returns what is between the quotes.
func (p *parser) quoted() []byte {
	p.want(`"`)
	for i := 0; i < len(p.rest); i++ {
		switch p.rest[i] {
		case '\\':
			i++
		case '"':
			s := p.rest[:i]
			p.rest = p.rest[i+1:]
			return s
		}
	}
	p.ok = false
	return nil
}

// Unquote decodes what quoted returned.
func Unquote(b []byte) string {
	if bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b) {
		return string(b)
	}
	var s string
	if json.Unmarshal(append(append([]byte{'"'}, b...), '"'), &s) != nil {
		return string(bytes.ToValidUTF8(b, []byte(string(utf8.RuneError))))
	}
	return s
}

// Decode copies a record out of the line.
func (l *Line) Decode() journal.Record {
	t, _ := time.Parse(timeForm, string(l.time)) // zero if it makes no sense
	return journal.Record{
		Seq:  l.Seq,
		Time: t,
		Turn: int(l.turn),
		Kind: Unquote(l.Name),
		Body: bytes.Clone(l.body),
	}
}

// Chunk copies a piece of an open item out of the line.
func (l *Line) Chunk() journal.Chunk {
	c := journal.Chunk{Item: Unquote(l.Item), Tag: Unquote(l.tag), Offset: l.at}
	if !l.binary {
		c.Text = Unquote(l.text)
	} else if b, err := base64.StdEncoding.AppendDecode(nil, l.text); err == nil {
		c.Text = string(b)
	}
	return c
}

// Follows reports whether a record is the one with the number that is due, and
// was written after the record with the given sum. 0 fits all, and so does a record
// that stands for a lost one.
func (l *Line) Follows(next uint64, sum uint32) bool {
	return l.Seq == next && (!l.Linked || sum == 0 || l.Prev == sum || string(l.Name) == KindDamaged)
}

// SumForNext is what the next record is to have as prev, or 0 if that is not
// known: this one stands for another that was lost.
func (l *Line) SumForNext() uint32 {
	if string(l.Name) == KindDamaged {
		return 0
	}
	return l.Sum
}

// DamagedRecord stands for a record that was lost with a stretch of so many
// bytes, which are now in the file of that name.
func DamagedRecord(seq uint64, at time.Time, lost int64, file string) journal.Record {
	b := append([]byte(nil), `{"bytes":`...)
	b = strconv.AppendInt(b, lost, 10)
	if file != "" {
		b = append(b, `,"file":`...)
		b = AppendString(b, file)
	}
	b = append(b, '}')
	return journal.Record{Seq: seq, Time: at, Kind: KindDamaged, Body: b}
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string that is valid UTF-8 and has no NUL
// byte and no line break.
func AppendString[T string | []byte](b []byte, s T) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
			if r != utf8.RuneError || n != 1 {
				i += n
				continue
			}
		}
		b = append(b, s[from:i]...)
		b = appendEscape(b, c)
		i++
		from = i
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// appendEscape appends what stands for a byte that cannot stand for itself.
func appendEscape(b []byte, c byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(b, '\\', c)
	case c == '\n':
		return append(b, '\\', 'n')
	case c == '\r':
		return append(b, '\\', 'r')
	case c == '\t':
		return append(b, '\\', 't')
	case c >= utf8.RuneSelf:
		return utf8.AppendRune(b, utf8.RuneError)
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
