package chat

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/model/emit"
)

// Some servers do not take a model's own format apart: reasoning stands between
// <think> and </think> at the beginning of the text, and calls stand in it as XML. A
// splitter finds both while the text arrives.
type splitter struct {
	state splitState
	held  string // what may be the beginning of a mark
}

type splitState int

const (
	splitStart splitState = iota // nothing but white space so far
	splitThinking
	splitText
	splitCall // everything from here on is a call
)

const thinkOpen, thinkClose = "<think>", "</think>"

var callMarks = []string{"<tool_call>", "<function="}

// split takes the next piece of the text and returns what of it is reasoning and what
// is said. What could be the beginning of a mark is kept until it is clear.
func (s *splitter) split(piece string) (thought, text string) {
	s.held += piece
	if s.state == splitStart {
		rest := strings.TrimLeft(s.held, " \t\r\n")
		switch {
		case strings.HasPrefix(rest, thinkOpen):
			s.state, s.held = splitThinking, rest[len(thinkOpen):]
		case strings.HasPrefix(thinkOpen, rest):
			return "", "" // also if nothing came yet
		default:
			s.state = splitText
		}
	}
	if s.state == splitThinking {
		before, after, found := strings.Cut(s.held, thinkClose)
		if !found {
			keep := suffixOf(s.held, thinkClose)
			thought, s.held = s.held[:len(s.held)-keep], s.held[len(s.held)-keep:]
			return thought, ""
		}
		thought, s.held, s.state = before, strings.TrimLeft(after, "\r\n"), splitText
	}
	if s.state == splitText {
		text = s.beforeCall()
	}
	return thought, text
}

// beforeCall takes the text up to a call.
func (s *splitter) beforeCall() string {
	keep := 0
	for _, mark := range callMarks {
		if i := strings.Index(s.held, mark); i >= 0 {
			text := s.held[:i]
			s.state, s.held = splitCall, s.held[i:]
			return text
		}
		keep = max(keep, suffixOf(s.held, mark))
	}
	text := s.held[:len(s.held)-keep]
	s.held = s.held[len(s.held)-keep:]
	return text
}

// suffixOf is how many bytes at the end of s are the beginning of mark.
func suffixOf(s, mark string) int {
	for n := min(len(s), len(mark)-1); n > 0; n-- {
		if strings.HasSuffix(s, mark[:n]) {
			return n
		}
	}
	return 0
}

var (
	xmlCall = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)<function=([^>\s]+)>(.*?)(?:</function>|$)`)
	})
	xmlParameter = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)<parameter=([^>\s]+)>\n?(.*?)\n?</parameter>`)
	})
	jsonCall = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)<tool_call>\s*(\{.*?\})\s*(?:</tool_call>|$)`)
	})
)

// callsIn finds the calls in what a splitter held back: <tool_call>{"name":…}</tool_call>
// or <function=name><parameter=key>value</parameter></function>. Only those of offered tools count.
func callsIn(tools []model.ToolSpec, text string) []functionPiece {
	var calls []functionPiece
	for _, m := range jsonCall().FindAllStringSubmatch(text, -1) {
		var f functionPiece
		if json.Unmarshal([]byte(m[1]), &f) == nil && offered(tools, f.Name) {
			calls = append(calls, f)
		}
	}
	for _, m := range xmlCall().FindAllStringSubmatch(text, -1) {
		if !offered(tools, m[1]) {
			continue
		}
		arguments := map[string]any{}
		for _, p := range xmlParameter().FindAllStringSubmatch(m[2], -1) {
			arguments[p[1]] = parameterValue(p[2])
		}
		calls = append(calls, functionPiece{Name: m[1], Arguments: json.RawMessage(emit.Marshal(arguments))})
	}
	return calls
}

// parameterValue is a list, an object, a number or a truth value if it looks like
// one, else a text.
func parameterValue(s string) any {
	var v any
	if t := strings.TrimSpace(s); t != "" && strings.ContainsAny(t[:1], "[{tf0123456789-") && json.Unmarshal([]byte(t), &v) == nil {
		return v
	}
	return s
}
