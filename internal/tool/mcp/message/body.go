package message

import (
	"bytes"
	"io"
	"mime"
	"net/http"
)

// Shorten makes the messages in the body of an answer shorter where they are long. tooLong is called for one that is longer than any
// message may be.
func Shorten(r *http.Response, m Bounds, tooLong func()) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // "" is one message
	r.Body = &shortBody{ReadCloser: r.Body, events: kind == "text/event-stream", longest: m.Longest, tooLong: tooLong, message: cutter{keep: m.Keep}}
}

// A shortBody is the body of an answer: one message, or a stream of events with one message each.
type shortBody struct {
	io.ReadCloser
	events  bool
	longest int
	tooLong func()

	message cutter
	inLine  bool   // the line is not empty
	ready   []byte // what can be read
	err     error  // behind it
	buffer  [32 << 10]byte
}

func (b *shortBody) Read(p []byte) (int, error) {
	for len(b.ready) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		n, err := b.ReadCloser.Read(b.buffer[:])
		b.take(b.buffer[:n])
		if err != nil && b.err == nil {
			b.end()
			b.err = err
		}
	}
	n := copy(p, b.ready)
	b.ready = b.ready[n:]
	return n, nil
}

func (b *shortBody) take(p []byte) {
	for len(p) > 0 && b.err == nil {
		line, rest, newline := bytes.Cut(p, []byte("\n"))
		b.message.take(line)
		b.inLine = b.inLine || len(bytes.TrimRight(line, "\r")) > 0
		if newline {
			b.message.takeNewline()
			if b.events && !b.inLine {
				b.end()
			}
			b.inLine = false
		}
		p = rest
		if b.message.size > b.longest {
			b.err = ErrTooLong
			b.tooLong()
		}
	}
}

// end makes a message ready.
func (b *shortBody) end() {
	dropped := b.message.dropped
	message := b.message.finish()
	if dropped && b.events && len(message) > 0 {
		message = append(append([]byte("data: "), message...), "\n\n"...)
	}
	b.ready = append(b.ready, message...)
}
