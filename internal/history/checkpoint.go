package history

import (
	"encoding/json"
	"fmt"

	p "github.com/fermata-agent/fermata/protocol"
)

type savedHistory struct {
	Settings  p.Settings      `json:"settings"`
	Next      *p.Settings     `json:"next,omitempty"`
	Compacted p.TurnID        `json:"compacted,omitempty"`
	Lead      int             `json:"lead"`
	Lost      []string        `json:"lost,omitempty"`
	Entries   json.RawMessage `json:"entries"`
}

type savedEntry struct {
	Turn      p.TurnID     `json:"turn,omitempty"`
	Response  int          `json:"response,omitempty"`
	Kind      p.PromptKind `json:"kind"`
	Content   []p.Content  `json:"content,omitempty"`
	Text      string       `json:"text,omitempty"`
	Call      p.CallID     `json:"call,omitzero"`
	WireID    string       `json:"wire_id,omitempty"`
	CallKind  p.CallKind   `json:"call_kind,omitempty"`
	Name      string       `json:"name,omitempty"`
	Arguments string       `json:"arguments,omitempty"`
	Raw       p.Raw        `json:"raw,omitzero"`
}

// Save returns the history in a form that Restore reads. It must be called
// between turns, when no call lacks an output and no background command runs.
func (h *History) Save() ([]byte, error) {
	out := savedHistory{Settings: h.settings, Next: h.next, Compacted: h.compacted, Lead: len(h.lead), Lost: h.lost, Entries: h.saved}
	if h.saved != nil {
		return json.Marshal(out)
	}
	list := make([]savedEntry, len(h.entries))
	for i, e := range h.entries {
		it := e.item
		list[i] = savedEntry{
			e.turn, e.response, it.Kind, it.Content, it.Text, it.Call, it.WireID,
			it.CallKind, it.Name, it.Arguments, it.Raw,
		}
	}
	var err error
	if out.Entries, err = json.Marshal(list); err != nil {
		return nil, fmt.Errorf("save history: %w", err)
	}
	return json.Marshal(out)
}

// Restore returns the history that Save wrote. The items are decoded when they
// are first needed, so that a long conversation opens at once.
func Restore(data []byte) (*History, error) {
	var in savedHistory
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("restore history: %w", err)
	}
	return &History{
		saved: in.Entries, settings: in.Settings, next: in.Next, compacted: in.Compacted,
		lead: make([]*entry, in.Lead), lost: in.Lost,
	}, nil
}

// thaw decodes what Restore put off.
func (h *History) thaw() {
	if h.saved == nil {
		return
	}
	var list []savedEntry
	// The journal has verified the checkpoint's checksum: this is what Save wrote.
	_ = json.Unmarshal(h.saved, &list)
	h.saved = nil
	for _, s := range list {
		h.add(s.Turn, s.Response, &p.PromptItem{
			Kind: s.Kind, Content: s.Content, Text: s.Text, Call: s.Call, WireID: s.WireID,
			CallKind: s.CallKind, Name: s.Name, Arguments: s.Arguments, Raw: s.Raw,
		})
	}
	n := min(len(h.lead), len(h.entries))
	h.lead = h.entries[:n:n]
}
