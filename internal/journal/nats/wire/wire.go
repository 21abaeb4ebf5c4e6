// Package wire is the form of the messages that a store on NATS keeps.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/fermata-agent/fermata/internal/journal"
)

// Header holds a message's meta as JSON. It is a header so that a list of
// conversations needs no bodies.
const Header = "Fermata"

// A Meta says what a message is. Messages of records carry the state of the
// conversation after them, so that the last one says how it stands.
type Meta struct {
	Version  int    `json:"v"`
	Epoch    uint64 `json:"e"`           // one more each time that a process opens the conversation
	Node     string `json:"n"`           // who wrote it
	ID       uint64 `json:"d,omitempty"` // what its node calls it
	Prev     uint64 `json:"p,omitempty"` // sequence of the message of records before it, as the writer knew it
	Far      uint64 `json:"f,omitempty"` // sequence of one about farRecords records before
	Last     uint64 `json:"l,omitempty"` // number of the last record
	Bytes    int64  `json:"b,omitempty"` // of everything written so far, text included
	Closed   bool   `json:"c,omitempty"` // no process has the conversation open
	Archived bool   `json:"a,omitempty"`
	Begin    bool   `json:"o,omitempty"` // the epoch begins: what others write in earlier ones does not count
	Cut      bool   `json:"x,omitempty"` // records before it that have its numbers, or higher ones, are void
	Piece    int    `json:"i,omitempty"` // 1-based; of a batch that is too large for one message
	Pieces   int    `json:"k,omitempty"`
	Sum      uint32 `json:"s,omitempty"` // Checksum of the body
}

// Version is that of the messages that this program writes, and the only one that it reads.
const Version = 1

// Checksum is made when it is first needed: not every command has a server.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli()) }

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// Encode returns the header of a message with a body.
func (m Meta) Encode(body []byte) string {
	m.Version = Version
	if len(body) > 0 {
		m.Sum = Checksum(body)
	}
	b, _ := json.Marshal(m) // of numbers and a name
	return string(b)
}

// ParseMeta reads the meta of a message.
func ParseMeta(header string) (Meta, error) {
	var m Meta
	if err := json.Unmarshal([]byte(header), &m); err != nil {
		return Meta{}, fmt.Errorf("not a message of fermata: %v", err)
	}
	if m.Version != Version {
		return Meta{}, fmt.Errorf("a message of version %d: this fermata knows version %d", m.Version, Version)
	}
	return m, nil
}

// ErrDamaged says that a message is not as it was written.
var ErrDamaged = errors.New("damaged message")

// Verify compares a body with its Checksum.
func (m Meta) Verify(body []byte) error {
	if m.Sum != 0 && Checksum(body) != m.Sum || m.Sum == 0 && len(body) > 0 {
		return ErrDamaged
	}
	return nil
}

// A part is the line of JSON before each record or text of a body.
type part struct {
	Seq    uint64    `json:"seq,omitempty"`
	Time   time.Time `json:"time,omitzero"`
	Turn   int       `json:"turn,omitempty"`
	Kind   string    `json:"kind,omitempty"`
	Closes string    `json:"closes,omitempty"`
	Item   []byte    `json:"item,omitempty"`
	Tag    []byte    `json:"tag,omitempty"`
	Offset int64     `json:"offset,omitempty"`
	Size   int       `json:"size"` // of the bytes that follow
}

func appendPart(buf []byte, p part, body []byte) []byte {
	p.Size = len(body)
	head, _ := json.Marshal(p)
	buf = append(append(buf, head...), '\n')
	buf = append(buf, body...)
	return append(buf, '\n')
}

// nextPart takes the first part off a body.
func nextPart(b []byte) (p part, body, rest []byte, err error) {
	head, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok || json.Unmarshal(head, &p) != nil {
		return part{}, nil, nil, ErrDamaged
	}
	if p.Size < 0 || p.Size >= len(rest) || rest[p.Size] != '\n' {
		return part{}, nil, nil, ErrDamaged
	}
	return p, rest[:p.Size:p.Size], rest[p.Size+1:], nil
}

// EncodeRecords returns the body of a message that holds the records in order.
func EncodeRecords(recs []journal.Pending) []byte {
	size := 0
	for i := range recs {
		size += len(recs[i].Body) + 160
	}
	buf := make([]byte, 0, size)
	for i := range recs {
		r := &recs[i]
		buf = appendPart(buf, part{Seq: r.Seq, Time: r.Time, Turn: r.Turn, Kind: r.Kind, Closes: r.Closes}, r.Body)
	}
	return buf
}

// DecodeRecords returns the records of a body.
func DecodeRecords(b []byte) ([]journal.Pending, error) {
	var recs []journal.Pending
	for len(b) > 0 {
		p, body, rest, err := nextPart(b)
		if err != nil {
			return recs, err
		}
		recs = append(recs, journal.Pending{
			Record: journal.Record{Seq: p.Seq, Time: p.Time, Turn: p.Turn, Kind: p.Kind, Body: body},
			Closes: p.Closes,
		})
		b = rest
	}
	return recs, nil
}

// TextRoom is about how many bytes of text go into one message.
const TextRoom = 64 << 10

// EncodeTexts returns the bodies of messages that hold the texts in order, each with about room bytes at most.
func EncodeTexts(texts []journal.ItemText, room int) [][]byte {
	var bodies [][]byte
	var buf []byte
	for _, t := range texts {
		for _, pc := range t.Pieces {
			for offset := 0; offset < len(pc.Text) || offset == 0; {
				text := pc.Text[offset:runeEnd(pc.Text, offset, room)]
				if len(buf) > 0 && len(buf)+len(text) > room {
					bodies, buf = append(bodies, buf), nil
				}
				buf = appendPart(buf, part{Item: []byte(t.Item.Name()), Tag: []byte(pc.Tag), Offset: pc.Offset + int64(offset)}, text)
				if offset += len(text); len(text) == 0 {
					break
				}
			}
		}
	}
	if len(buf) > 0 {
		bodies = append(bodies, buf)
	}
	return bodies
}

// runeEnd returns where a piece of a text ends that begins at an offset and has so many bytes at most: between runes, where the
// text is UTF-8.
func runeEnd(text []byte, from, size int) int {
	end := from + size
	if end >= len(text) {
		return len(text)
	}
	for i := end; i > end-utf8.UTFMax && i > from; i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return end
}

// DecodeTexts returns the texts of a body.
func DecodeTexts(b []byte) ([]journal.Chunk, error) {
	var chunks []journal.Chunk
	for len(b) > 0 {
		p, text, rest, err := nextPart(b)
		if err != nil {
			return chunks, err
		}
		chunks = append(chunks, journal.Chunk{Item: string(p.Item), Tag: string(p.Tag), Offset: p.Offset, Text: string(text)})
		b = rest
	}
	return chunks, nil
}
