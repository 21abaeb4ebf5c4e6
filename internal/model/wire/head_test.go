package wire

import (
	"encoding/json"
	"testing"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/protocol"
)

func TestTheHeadIsEncodedAnewOnlyWhenItChanges(t *testing.T) {
	var h Head
	encodings := 0
	get := func(p model.Prompt) {
		h.Get(p, func(model.Prompt) Encoded {
			encodings++
			return Encoded{}
		})
	}
	p := model.Prompt{Instructions: "a", Tools: []model.ToolSpec{{Name: "t", Parameters: json.RawMessage(`{}`)}}}
	get(p)
	p.Model, p.Items = "other", []*protocol.PromptItem{{}}
	get(p)
	if encodings != 1 {
		t.Errorf("the same head was encoded %d times", encodings)
	}
	for name, change := range map[string]func(*model.Prompt){
		"instructions": func(p *model.Prompt) { p.Instructions = "b" },
		"fewer tools":  func(p *model.Prompt) { p.Tools = nil },
		"name":         func(p *model.Prompt) { p.Tools[0].Name = "u" },
		"description":  func(p *model.Prompt) { p.Tools[0].Description = "d" },
		"parameters":   func(p *model.Prompt) { p.Tools[0].Parameters = json.RawMessage(`{"a":1}`) },
		"kind":         func(p *model.Prompt) { p.Tools[0].Kind = protocol.CallCustom },
		"grammar":      func(p *model.Prompt) { p.Tools[0].Grammar = "g" },
	} {
		get(p)
		encodings = 0
		q := p
		q.Tools = append([]model.ToolSpec(nil), p.Tools...)
		change(&q)
		get(q)
		if encodings != 1 {
			t.Errorf("%s changed, encoded %d times", name, encodings)
		}
	}
}

func TestLonePlace(t *testing.T) {
	user, other := &protocol.PromptItem{Kind: protocol.PromptUser}, &protocol.PromptItem{Kind: protocol.PromptAssistant}
	for _, tt := range []struct {
		items []*protocol.PromptItem
		lone  []string
		want  int
	}{
		{nil, nil, -1},
		{[]*protocol.PromptItem{user}, nil, -1},
		{nil, []string{"x"}, 0},
		{[]*protocol.PromptItem{other}, []string{"x"}, 1},
		{[]*protocol.PromptItem{user, other, user, other}, []string{"x"}, 2},
	} {
		if got := UnknownCallsPlace(model.Prompt{Items: tt.items, UnknownCalls: tt.lone}); got != tt.want {
			t.Errorf("%d items, %d lone: %d, want %d", len(tt.items), len(tt.lone), got, tt.want)
		}
	}
}
