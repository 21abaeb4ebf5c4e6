package chat

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/fermata-agent/fermata/protocol"
)

// forms gives the items the forms that the server takes, as far as those are known.
func (b *builder) forms(items []*protocol.PromptItem) []*protocol.PromptItem {
	said, several, called := false, false, false
	for i, it := range items {
		said = said || it.Kind == protocol.PromptAssistant || it.Kind == protocol.PromptCall
		called = called || it.Kind == protocol.PromptCall
		several = several || it.Kind == protocol.PromptCall && i > 0 && items[i-1].Kind == protocol.PromptCall
	}
	b.blank = said && !b.May(noReasoning)
	if several && !b.May(severalCalls) {
		items = interleave(items)
	}
	if called && !b.May(freeIDs) {
		b.rename, b.original = true, map[string]string{}
		for _, it := range items {
			if it.Kind == protocol.PromptCall {
				b.original[shortID(it.WireID)] = it.WireID
			}
		}
	}
	return items
}

// interleave puts the output of each call directly behind the call.
func interleave(items []*protocol.PromptItem) []*protocol.PromptItem {
	out := make([]*protocol.PromptItem, 0, len(items))
	outputs := map[protocol.CallID]*protocol.PromptItem{}
	for _, it := range items {
		if it.Kind == protocol.PromptOutput {
			outputs[it.Call] = it
		}
	}
	for _, it := range items {
		if it.Kind == protocol.PromptOutput && outputs[it.Call] == nil {
			continue // it stands behind its call
		}
		out = append(out, it)
		if o := outputs[it.Call]; it.Kind == protocol.PromptCall && o != nil {
			out = append(out, o)
			delete(outputs, it.Call)
		}
	}
	return out
}

// shortID is an id of nine letters and digits that stands for another one.
func shortID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:9]
}
