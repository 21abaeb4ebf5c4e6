package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	p "github.com/fermata-agent/fermata/protocol"
)

// savedHistory is a History as it is saved.
type savedHistory struct {
	Settings  p.Settings
	Next      *p.Settings `json:",omitempty"`
	Compacted p.TurnID    `json:",omitempty"`
	Size      int64
	Base      int64
	Window    int64        `json:",omitempty"`
	Shortened bool         `json:",omitempty"`
	Plan      []p.PlanStep `json:",omitempty"`
	Changed   []fileChange `json:",omitempty"`
	Lead      int
	Missing   []p.CallID `json:",omitempty"`
	Group     savedGroup
	Notes     turnNotes                 `json:",omitzero"`
	Running   map[p.BackgroundID]string `json:",omitempty"`
	Lost      []string                  `json:",omitempty"`
}

type savedGroup struct {
	Turn      p.TurnID
	Response  int
	Reasoning []*p.Reasoning             `json:",omitempty"`
	Partial   *p.AssistantMessage        `json:",omitempty"`
	Before    int                        `json:",omitempty"`
	Calls     []int                      `json:",omitempty"` // places in the entries
	Outputs   map[p.CallID]*p.ToolOutput `json:",omitempty"`
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
	Failed    bool         `json:"failed,omitempty"`
	Name      string       `json:"name,omitempty"`
	Arguments string       `json:"arguments,omitempty"`
	Raw       p.Raw        `json:"raw,omitzero"`
	Own       bool         `json:"own,omitempty"`
	ID        p.ItemID     `json:"id,omitzero"`
}

// SavedAs returns a value of the type that Save encodes, so that whoever keeps
// it can know whether it has the form of today.
func (*History) SavedAs() any {
	return struct {
		savedHistory
		List []savedEntry
	}{}
}

// Save returns the history in a form that Restore reads: a line for all but the
// entries, then a list of savedEntry, which would be copied once more as a part of it.
func (h *History) Save() ([]byte, error) {
	out := savedHistory{
		Settings: h.settings, Next: h.nextSettings, Compacted: h.compacted, Lead: len(h.lead), Missing: h.missing,
		Size: h.size, Base: h.base, Window: h.window, Shortened: h.shortened, Plan: h.plan, Changed: h.changed,
		Group: h.group.save(h.entries), Notes: h.notes, Running: h.background, Lost: h.endedBackground,
	}
	head, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("save history: %w", err)
	}
	entries := h.saved
	if entries == nil {
		if entries, err = h.saveEntries(); err != nil {
			return nil, fmt.Errorf("save history: %w", err)
		}
	}
	return slices.Concat(head, []byte("\n"), entries), nil
}

func (h *History) saveEntries() ([]byte, error) {
	list := make([]savedEntry, len(h.entries))
	for i, e := range h.entries {
		it := e.item
		list[i] = savedEntry{
			e.turn, e.response, it.Kind, it.Content, it.Text, it.Call, it.WireID,
			it.CallKind, it.Failed, it.Name, it.Arguments, it.Raw, e.own, e.id,
		}
	}
	return json.Marshal(list)
}

func (g group) save(entries []*entry) savedGroup {
	s := savedGroup{g.turn, g.response, g.reasoning, g.partial, g.before, nil, g.outputs}
	for _, c := range g.calls {
		s.Calls = append(s.Calls, slices.Index(entries, c))
	}
	return s
}

// Restore returns the history that Save wrote. Unless calls are open, the items
// are decoded when they are first needed, so that a long conversation opens at once.
func Restore(data []byte) (*History, error) {
	var in savedHistory
	head, entries, ok := bytes.Cut(data, []byte("\n"))
	if !ok {
		return nil, errors.New("restore history: there are no entries")
	}
	if err := json.Unmarshal(head, &in); err != nil {
		return nil, fmt.Errorf("restore history: %w", err)
	}
	g := in.Group
	h := &History{
		saved: entries, settings: in.Settings, nextSettings: in.Next, compacted: in.Compacted,
		size: in.Size, base: in.Base, window: in.Window, shortened: in.Shortened, plan: in.Plan, changed: in.Changed,
		lead: make([]*entry, in.Lead), missing: in.Missing, notes: in.Notes, background: in.Running, endedBackground: in.Lost,
		group: group{turn: g.Turn, response: g.Response, reasoning: g.Reasoning, partial: g.Partial, before: g.Before, outputs: g.Outputs},
	}
	if len(g.Calls) == 0 {
		return h, nil
	}
	h.decode()
	for _, i := range g.Calls {
		if i < 0 || i >= len(h.entries) {
			return nil, fmt.Errorf("restore history: an open call has place %d of %d", i, len(h.entries))
		}
		h.group.calls = append(h.group.calls, h.entries[i])
	}
	return h, nil
}

// decode decodes what Restore put off.
func (h *History) decode() {
	if h.saved == nil {
		return
	}
	var list []savedEntry
	// The journal has verified the checkpoint's checksum: this is what Save wrote.
	_ = json.Unmarshal(h.saved, &list)
	h.saved, h.size = nil, 0
	for _, s := range list {
		e := h.add(s.Turn, s.Response, &p.PromptItem{
			Kind: s.Kind, Content: s.Content, Text: s.Text, Call: s.Call, WireID: s.WireID,
			CallKind: s.CallKind, Failed: s.Failed, Name: s.Name, Arguments: s.Arguments, Raw: s.Raw,
		})
		e.own, e.id = s.Own, s.ID
	}
	n := min(len(h.lead), len(h.entries))
	h.lead = h.entries[:n:n]
}
