package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	p "github.com/fermata-agent/fermata/protocol"
)

func encode(t testing.TB, w Work) []byte {
	t.Helper()
	data, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestWorkReadsBack(t *testing.T) {
	work := Work{Version: workVersion, Conversation: "c", Op: p.OpJSON{Op: p.UserTurn{Content: p.Text("go")}}, Name: "n", Dir: "/d"}
	got, err := decodeWork(encode(t, work))
	if err != nil || got.Conversation != "c" || got.Name != "n" || got.Dir != "/d" {
		t.Fatalf("%+v, %v", got, err)
	}
	if op, ok := got.Op.Op.(p.UserTurn); !ok || p.PlainText(op.Content) != "go" {
		t.Errorf("op %+v", got.Op.Op)
	}
	adopt := Work{Version: adoptVersion, Conversation: "c", Name: "n", Adopt: true}
	if got, err := decodeWork(encode(t, adopt)); err != nil || !got.Adopt || got.Op.Op != nil {
		t.Errorf("%+v, %v", got, err)
	}
	other := work
	other.Version++
	if _, err := decodeWork(encode(t, other)); !errors.As(err, new(*VersionError)) {
		t.Errorf("another version: %v", err)
	}
	noName := work
	noName.Name = ""
	both := work
	both.Adopt = true
	interrupt := work
	interrupt.Op = p.OpJSON{Op: p.Interrupt{}}
	for name, data := range map[string][]byte{
		"nothing": nil, "not JSON": []byte("x"), "no version": []byte("{}"), "no op": []byte(`{"version":1,"conversation":"c","name":"n"}`),
		"an op of work that waits": encode(t, both),
		"no name":                  encode(t, noName), "another op": encode(t, interrupt),
	} {
		if _, err := decodeWork(data); !errors.Is(err, errWork) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLabels(t *testing.T) {
	for _, good := range []string{"gpu", "linux-6_1", "A"} {
		if err := CheckLabel(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "a.b", "a b", "*", ">", "ü", "a\n", strings.Repeat("a", 33)} {
		if CheckLabel(bad) == nil {
			t.Errorf("%q was taken for a label", bad)
		}
	}
}

func TestWhoTakesPart(t *testing.T) {
	for _, test := range []struct {
		member nats.Member
		label  string
		want   bool
	}{
		{nats.Member{}, "", false}, // has a conversation open, and runs nothing for others
		{nats.Member{Turns: 1}, "", true},
		{nats.Member{Turns: 1}, "gpu", false},
		{nats.Member{Turns: 1, Labels: []string{"gpu", "big"}}, "big", true},
		{nats.Member{Labels: []string{"big"}}, "big", false},
	} {
		if got := TakesPart(nats.Node{Owner: journal.Owner{}, Member: test.member}, test.label); got != test.want {
			t.Errorf("%+v for %q: %v", test.member.Labels, test.label, got)
		}
	}
	if TakesPart(nats.Node{Member: nats.Member{Turns: 1}, Activity: nats.Activity{Draining: true}}, "") {
		t.Error("a node that is draining takes part")
	}
}

type fakeEngine struct {
	engine.Engine
	ops []p.Op
}

func (e *fakeEngine) Submit(_ context.Context, _ p.ConversationID, op p.Op) (p.Receipt, error) {
	e.ops = append(e.ops, op)
	return p.Receipt{}, nil
}

func (e *fakeEngine) ReleaseWaiting(context.Context, p.ConversationID) error { return nil }

func (e *fakeEngine) Read(context.Context, p.ConversationID) iter.Seq2[p.Event, error] {
	return func(yield func(p.Event, error) bool) {
		for i, op := range []string{"a", "b"} {
			if !yield(p.Event{Seq: p.Seq(i + 1), Turn: 1, Body: &p.TurnStarted{Cause: p.Cause{Op: op}}}, nil) {
				return
			}
		}
	}
}

func TestRecordedWorkIsKnown(t *testing.T) {
	w := Worker{Local: &fakeEngine{}}
	for name, want := range map[string]bool{"a": true, "b": true, "c": false} {
		if got, err := w.isRecorded(t.Context(), Work{Name: name}); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// The message of a turn that was begun elsewhere is not submitted again; everything else is.
func TestStartedTurnIsNotSubmitted(t *testing.T) {
	inner := &fakeEngine{}
	want := p.Receipt{Turn: 3, Seq: 7}
	e := Started(inner, Following{Receipt: want})
	if got, err := e.Submit(t.Context(), "c", p.UserTurn{}); got != want || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := e.Submit(t.Context(), "c", p.Interrupt{}); err != nil || len(inner.ops) != 1 {
		t.Errorf("%v, %v", inner.ops, err)
	}
}

// A turn's settings on a machine are that machine's to say.
func TestWorkBringsNoSettings(t *testing.T) {
	inner := &fakeEngine{}
	w := Worker{Local: inner, Prepare: func(context.Context, Work) (*p.Overrides, error) { return nil, nil }}
	work := Work{Op: p.OpJSON{Op: p.UserTurn{Overrides: &p.Overrides{}}}}
	if _, err := w.submit(t.Context(), work); err == nil || len(inner.ops) > 0 {
		t.Errorf("%v, %v", inner.ops, err)
	}
}
