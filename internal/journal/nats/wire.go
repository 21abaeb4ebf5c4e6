package nats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
)

// metaHeader holds a message's meta as JSON. It is a header so that a list of
// conversations needs no bodies.
const metaHeader = "Fermata"

// A meta says what a message is. Messages of records carry the state of the
// conversation after them, so that the last one says how it stands.
type meta struct {
	Version  int    `json:"v"`
	Epoch    uint64 `json:"e"`           // one more each time that somebody opens the conversation
	Node     string `json:"n"`           // who wrote it
	ID       uint64 `json:"d,omitempty"` // what its node calls it
	Prev     uint64 `json:"p,omitempty"` // sequence of the message of records before it, as the writer knew it
	Far      uint64 `json:"f,omitempty"` // sequence of one about farRecords records before
	Last     uint64 `json:"l,omitempty"` // number of the last record
	Bytes    int64  `json:"b,omitempty"` // of everything written so far, text included
	Closed   bool   `json:"c,omitempty"` // nobody has the conversation open
	Archived bool   `json:"a,omitempty"`
	Begin    bool   `json:"o,omitempty"` // the epoch begins: what others write in earlier ones does not count
	Cut      bool   `json:"x,omitempty"` // records before it that have its numbers, or higher ones, are void
	Piece    int    `json:"i,omitempty"` // 1-based; of a batch that is too large for one message
	Pieces   int    `json:"k,omitempty"`
	Sum      uint32 `json:"s,omitempty"` // checksum of the body
}

const wireVersion = 1

// checksum is made when it is first needed: not every command has a server.
func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli()) }

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

func (m meta) encode(body []byte) string {
	m.Version = wireVersion
	if len(body) > 0 {
		m.Sum = checksum(body)
	}
	b, _ := json.Marshal(m) // of numbers and a name
	return string(b)
}

// parseMeta reads the meta of a message.
func parseMeta(header string) (meta, error) {
	var m meta
	if err := json.Unmarshal([]byte(header), &m); err != nil {
		return meta{}, fmt.Errorf("not a message of fermata: %v", err)
	}
	if m.Version != wireVersion {
		return meta{}, fmt.Errorf("a message of version %d: this fermata knows version %d", m.Version, wireVersion)
	}
	return m, nil
}

var errDamaged = errors.New("damaged message")

// verify compares a body with its checksum.
func (m meta) verify(body []byte) error {
	if m.Sum != 0 && checksum(body) != m.Sum || m.Sum == 0 && len(body) > 0 {
		return errDamaged
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
		return part{}, nil, nil, errDamaged
	}
	if p.Size < 0 || p.Size >= len(rest) || rest[p.Size] != '\n' {
		return part{}, nil, nil, errDamaged
	}
	return p, rest[:p.Size:p.Size], rest[p.Size+1:], nil
}

func encodeRecords(recs []journal.Pending) []byte {
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

func decodeRecords(b []byte) ([]journal.Pending, error) {
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

// textRoom is about how many bytes of text go into one message.
const textRoom = 64 << 10

// encodeTexts returns the bodies of messages that hold the texts in order.
func encodeTexts(texts []journal.ItemText) [][]byte {
	var bodies [][]byte
	var buf []byte
	for _, t := range texts {
		for _, pc := range t.Pieces {
			if len(buf) > 0 && len(buf)+len(pc.Text) > textRoom {
				bodies, buf = append(bodies, buf), nil
			}
			buf = appendPart(buf, part{Item: []byte(t.Item.Name()), Tag: []byte(pc.Tag), Offset: pc.Offset}, pc.Text)
		}
	}
	if len(buf) > 0 {
		bodies = append(bodies, buf)
	}
	return bodies
}

func decodeTexts(b []byte) ([]journal.Chunk, error) {
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
