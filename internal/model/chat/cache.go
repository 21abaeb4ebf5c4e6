package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/fermata-agent/fermata/internal/model/wire"
)

// cacheMember is where a prompt may be cached up to. Claude models need it said;
// services in front of them pass it on.
var cacheMember = wire.Optional{Name: "cache_control"}

var contentMember = []byte(`"content":`)

const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// markCache marks the instructions and the last two messages that are not the
// model's own, if the model is a Claude.
func (b *builder) markCache(model string) {
	if !strings.Contains(strings.ToLower(model), "claude") || len(b.contents) == 0 || !b.May(cacheMember) {
		return
	}
	places := slices.Clone(b.contents)
	if n := len(places); n > 3 {
		places = append(places[:1], places[n-2:]...)
	}
	for _, at := range slices.Backward(places) { // from the end, so that the others stay where they are
		var content json.RawMessage
		if json.NewDecoder(bytes.NewReader(b.body[at:])).Decode(&content) != nil {
			continue
		}
		rest := bytes.Clone(b.body[at+len(content):])
		b.body = append(append(b.body[:at], marked(content)...), rest...)
	}
}

// marked is a content whose last part has the mark.
func marked(content []byte) []byte {
	if content[0] == '"' {
		return slices.Concat([]byte(`[{"type":"text","text":`), content, []byte(cacheMark+`}]`))
	}
	if last, ok := bytes.CutSuffix(content, []byte("}]")); ok {
		return slices.Concat(last, []byte(cacheMark+`}]`))
	}
	return content
}
