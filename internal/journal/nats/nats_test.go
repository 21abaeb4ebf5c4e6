package nats

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats/provision"
	"github.com/fermata-agent/fermata/internal/journal/nats/refusal"
	"github.com/fermata-agent/fermata/internal/journal/nats/wire"
)

func pending(n int, body string) journal.Pending {
	return journal.Pending{
		Record: journal.Record{Seq: uint64(n), Time: time.Unix(int64(n), 1000).UTC(), Turn: n / 2, Kind: "kind" + fmt.Sprint(n%3), Body: json.RawMessage(body)},
		Closes: fmt.Sprint(n) + ".",
	}
}

func message1(seq uint64, m meta, body []byte) *stored {
	return newStored("f.c.x.r", seq, time.Time{}, m.Encode(body), body)
}

// Pieces count when all of one batch are there, one after the other.
func TestPiecesAreJoined(t *testing.T) {
	body := wire.EncodeRecords([]journal.Pending{pending(1, `"long"`), pending(2, "2")})
	half := len(body) / 2
	first := meta{Epoch: 1, Node: "a", ID: 1, Piece: 1, Pieces: 2}
	second := first
	second.Piece = 2
	other := meta{Epoch: 2, Node: "b", ID: 2, Begin: true}
	for name, test := range map[string]struct {
		messages []*stored
		want     int
	}{
		"both":               {[]*stored{message1(1, first, body[:half]), message1(2, second, body[half:])}, 2},
		"only the second":    {[]*stored{message1(2, second, body[half:])}, 0},
		"another in between": {[]*stored{message1(1, first, body[:half]), message1(2, other, nil), message1(3, second, body[half:])}, 0},
		"twice the first":    {[]*stored{message1(1, first, body[:half]), message1(2, first, body[:half]), message1(3, second, body[half:])}, 2},
	} {
		var a assembler
		n := 0
		for _, m := range test.messages {
			n += len(a.records(m))
		}
		if n != test.want || len(a.faults) > 0 {
			t.Errorf("%s: %d records, want %d (%v)", name, n, test.want, a.faults)
		}
	}
}

// Text of somebody who is no longer the owner does not count.
func TestTextOfAnEarlierEpochIsIgnored(t *testing.T) {
	text := func(epoch uint64, node string) *stored {
		body := []byte("{\"item\":\"MS4xLjA=\",\"tag\":\"bWVzc2FnZQ==\",\"size\":5}\nhello\n")
		return newStored("f.c.x.t", 1, time.Time{}, meta{Epoch: epoch, Node: node}.Encode(body), body)
	}
	var a assembler
	a.records(message1(1, meta{Epoch: 1, Node: "a", Begin: true}, nil))
	if len(a.texts(text(1, "a"))) != 1 {
		t.Error("the owner's text was ignored")
	}
	a.records(message1(2, meta{Epoch: 2, Node: "b", Begin: true}, nil))
	for _, m := range []*stored{text(1, "a"), text(2, "a"), text(1, "b")} {
		if len(a.texts(m)) != 0 {
			t.Errorf("text of epoch %d of %s was taken in epoch 2 of b", m.Epoch, m.Node)
		}
	}
}

// What is sent twice is there once, and what a record closes is gone.
func TestOpenText(t *testing.T) {
	var o openText
	chunk := func(item string, off int64, text string) journal.Chunk {
		return journal.Chunk{Item: item, Tag: "t", Offset: off, Text: text}
	}
	m := &stored{seq: 5}
	o.add(m, []journal.Chunk{chunk("1.1", 0, "abc"), chunk("1.2", 0, "x")})
	o.add(m, []journal.Chunk{chunk("1.1", 0, "abcde")})
	o.add(m, []journal.Chunk{chunk("1.1", 1, "bc")})
	o.close([]journal.Pending{{Closes: "1.2"}, {Closes: "2."}}, 0)
	want := []journal.Chunk{chunk("1.1", 0, "abc"), chunk("1.1", 3, "de")}
	if diff := cmp.Diff(want, o.chunks()); diff != "" {
		t.Error(diff)
	}
	o.close([]journal.Pending{{Closes: "1."}}, 0)
	if len(o.chunks()) != 0 {
		t.Error("closed items are open")
	}
}

// An index never points behind the record that is looked for.
func TestIndexPointsBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	ix := index{kinds: make(map[string]uint64)}
	at := map[uint64]uint64{} // sequence of each record
	seq, n := uint64(100), uint64(0)
	for range 500 {
		seq += 1 + r.Uint64N(9)
		var batch []journal.Pending
		for range 1 + r.IntN(5) {
			n++
			at[n] = seq
			batch = append(batch, pending(int(n), "0"))
		}
		ix.add(batch, seq)
	}
	for i := uint64(1); i <= n; i++ {
		if from := ix.before(i); from > at[i] || i > 40 && from == 1 {
			t.Fatalf("record %d is at %d, the index says %d", i, at[i], from)
		}
		if far := ix.far(i); far != 0 && far > at[i-farRecords] {
			t.Fatalf("far of record %d is %d, record %d is at %d", i, far, i-farRecords, at[i-farRecords])
		}
	}
	if ix.kinds["kind0"] < at[n-3] {
		t.Errorf("the last of a kind is at %d", ix.kinds["kind0"])
	}
}

func TestCheckpointReadsBack(t *testing.T) {
	state, seq, err := decodeCheckpoint(encodeCheckpoint(7, []byte("state\n\x00")))
	if string(state) != "state\n\x00" || seq != 7 || err != nil {
		t.Errorf("%q, %d, %v", state, seq, err)
	}
	for _, b := range []string{"", "7\nstate", "7 00000000\nstate", "x 1\n"} {
		if _, _, err := decodeCheckpoint([]byte(b)); err == nil {
			t.Errorf("%q was taken for a checkpoint", b)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	full := &jetstream.APIError{Code: 503, ErrorCode: 10077, Description: "maximum bytes exceeded"}
	busy := &jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"}
	s := New(t.Context(), Options{URL: "nats://user:secret@a:4222,nats://b"})
	for _, test := range []struct {
		err  error
		want string
	}{
		{&refusal.ConnectError{URL: s.o.URL, Err: nats.ErrAuthorization}, "the NATS server nats://a:4222,nats://b refused the credentials: check [store] user, password, token, nkey or creds"},
		{&refusal.ConnectError{URL: s.o.URL, Err: nats.ErrNoServers}, "no NATS server answers at nats://a:4222,nats://b: is it running, and is [store] url right?"},
		{&refusal.StreamError{Name: "x", Err: jetstream.ErrJetStreamNotEnabled}, "the NATS server has no JetStream for this account: start it with -js, or give the account JetStream"},
		{provision.Check(jetstream.StreamConfig{Subjects: []string{"orders.>"}}, "orders"), "use the stream orders: it was not made for conversations: its subjects are [orders.>]"},
		{s.explain(busy), "the NATS servers have no leader (nats: API error: code=503 err_code=10008 description=JetStream system temporarily unavailable): try again in a moment; if that does not help, see that most of them run and reach each other"},
		{s.explain(full), "the stream is full (nats: API error: code=503 err_code=10077 description=maximum bytes exceeded): delete conversations, or raise its limit with fermata store set max_bytes"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
	if err := provision.Check(s.layout().Conversations(), "fermata"); err != nil {
		t.Errorf("our own stream is refused: %v", err)
	}
	if refusal.IsTransient(full) || !refusal.IsTransient(nats.ErrNoResponders) || !refusal.IsTransient(refusal.ErrNoAnswer) || refusal.IsTransient(nats.ErrConnectionClosed) {
		t.Error("what is tried again is wrong")
	}
}

// Text that a server stores after the record which closes its item, because it was sent over a connection that
// was lost, is not open again.
func TestLateTextIsNotOpen(t *testing.T) {
	var o openText
	text := func(seq, prev uint64, text string) {
		o.add(&stored{seq: seq, meta: meta{Prev: prev}}, []journal.Chunk{{Item: "1.1.0", Text: text}})
	}
	text(2, 1, "arguments")
	o.close([]journal.Pending{{Closes: "1.1.0"}}, 3)
	text(4, 1, "arguments")
	if got := o.chunks(); len(got) != 0 {
		t.Errorf("open: %v", got)
	}
	text(5, 3, "output")
	if got := o.chunks(); len(got) != 1 || got[0].Text != "output" {
		t.Errorf("open: %v", got)
	}
}

// A checkpoint of records that there are not is not used.
func TestCheckpointBeyondTheLastRecord(t *testing.T) {
	body := encodeCheckpoint(5, []byte("state"))
	for last, want := range map[uint64]uint64{4: 0, 5: 5, 6: 5} {
		state, seq := usableCheckpoint(body, last)
		if seq != want || (string(state) == "state") != (want != 0) {
			t.Errorf("with %d records: %q of %d, want of %d", last, state, seq, want)
		}
	}
	if state, seq := usableCheckpoint(body[1:], 9); state != nil || seq != 0 {
		t.Errorf("damaged: %q of %d", state, seq)
	}
}
