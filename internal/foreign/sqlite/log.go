package sqlite

import (
	"encoding/binary"
	"io"
)

const (
	logHead   = 32
	frameHead = 24
)

// readLog notes where the newest committed version of each page is in the write-ahead log. Frames behind the
// last commit, and those left over from an earlier use of the file, do not count.
func (db *DB) readLog(size int64) error {
	if size < logHead {
		return nil
	}
	head := make([]byte, logHead)
	if _, err := db.log.ReadAt(head, 0); err != nil {
		return err
	}
	magic := binary.BigEndian.Uint32(head)
	if magic&^1 != 0x377f0682 {
		return nil // not a log, or one that is about to begin
	}
	var order binary.ByteOrder = binary.LittleEndian
	if magic&1 == 1 {
		order = binary.BigEndian
	}
	pageSize := int(binary.BigEndian.Uint32(head[8:]))
	if pageSize < 512 || pageSize > 65536 || pageSize&(pageSize-1) != 0 {
		return invalid("the log's pages have %d bytes", pageSize)
	}
	sum := checksum{order: order}
	sum.add(head[:24])
	if !sum.is(head[24:]) {
		return nil
	}
	frame := make([]byte, frameHead+pageSize)
	pending := map[uint32]int64{}
	for at := int64(logHead); at+int64(len(frame)) <= size; at += int64(len(frame)) {
		if _, err := db.log.ReadAt(frame, at); err != nil && err != io.EOF {
			return err
		}
		sum.add(frame[:8])
		sum.add(frame[frameHead:])
		if string(frame[8:16]) != string(head[16:24]) || !sum.is(frame[16:]) {
			break
		}
		pending[binary.BigEndian.Uint32(frame)] = at + frameHead
		if pages := binary.BigEndian.Uint32(frame[4:]); pages > 0 {
			for n, at := range pending {
				db.inLog[n] = at
			}
			clear(pending)
			db.pages, db.pageSize = pages, pageSize
		}
	}
	return nil
}

// A checksum is the running sum over a log.
type checksum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

func (c *checksum) add(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		c.s0 += c.order.Uint32(b) + c.s1
		c.s1 += c.order.Uint32(b[4:]) + c.s0
	}
}

// is reports whether the sum is the one that was written.
func (c *checksum) is(b []byte) bool {
	return binary.BigEndian.Uint32(b) == c.s0 && binary.BigEndian.Uint32(b[4:]) == c.s1
}
