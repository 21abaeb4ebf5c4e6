package client

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

func message(text string) *Op {
	op := NewOp(p.UserTurn{Content: p.Text(text)})
	op.Begins, op.Text = true, text
	return op
}

func TestOneOpAtATimeInOrder(t *testing.T) {
	var b Outbox
	first, second, setting := message("first"), message("second"), NewOp(p.Compact{})
	b.Put(second)
	b.Put(setting)
	b.PutFirst(first)
	for _, want := range []*Op{first, second, setting} {
		got := b.Next()
		if got != want {
			t.Fatalf("got %v, want %v", got, want)
		}
		b.Send(got)
		if b.Next() != nil {
			t.Fatal("a second one is sent before the first is answered")
		}
		if b.Sending() != got.Begins {
			t.Errorf("a message is on its way: %v, want %v", b.Sending(), got.Begins)
		}
		b.Done()
	}
	if b.Next() != nil || b.Waiting() {
		t.Error("it is not empty")
	}
}

func TestRecall(t *testing.T) {
	var b Outbox
	b.Put(message("one"))
	b.Send(b.Next())
	b.Put(message("two"))
	b.Put(NewOp(p.Compact{}))
	b.Put(message("three"))
	if got := b.Messages(); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("not taken yet: %q", got)
	}
	if op := b.RecallLast(); op == nil || op.Text != "three" {
		t.Errorf("the last one is %+v", op)
	}
	if b.RecallLast() != nil {
		t.Error("a setting was recalled")
	}
	if got, _ := b.Recall(); !slices.Equal(got, []string{"two"}) || !b.Waiting() {
		t.Errorf("recalled %q; the setting waits: %v", got, b.Waiting())
	}
	if got := b.Messages(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("not taken yet: %q", got)
	}
}

type fake struct {
	engine.Engine
	to []p.ConversationID
}

func (f *fake) Submit(_ context.Context, id p.ConversationID, _ p.Op) (p.Receipt, error) {
	f.to = append(f.to, id)
	return p.Receipt{Turn: 7}, nil
}

func TestSubmitCreatesAConversationIfThereIsNone(t *testing.T) {
	var e fake
	create := func(context.Context) (p.ConversationID, error) { return "new", nil }
	got := Submit(t.Context(), &e, "", message("x"), create)
	if got.Err != nil || !got.Created || got.Conversation != "new" || got.Receipt.Turn != 7 {
		t.Errorf("%+v", got)
	}
	if got = Submit(t.Context(), &e, "old", message("x"), create); got.Created || got.Conversation != "old" {
		t.Errorf("%+v", got)
	}
	bad := message("x")
	bad.Make = func(context.Context) (p.Op, error) { return nil, errors.New("no such file") }
	if got = Submit(t.Context(), &e, "", bad, create); got.Err == nil || got.Created {
		t.Errorf("%+v", got)
	}
	if !slices.Equal(e.to, []p.ConversationID{"new", "old"}) {
		t.Errorf("submitted to %v", e.to)
	}
}
