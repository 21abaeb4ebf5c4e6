package policy

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// ParseRules reads a file of rules in the form that Codex uses: calls of prefix_rule with a
// pattern and, if it is not "allow", a decision. The examples in match and not_match are tried, so that a
// rule that does not mean what its author thought is an error. Calls of other functions are
// passed over; their names are returned.
func ParseRules(text string) (rules []PrefixRule, unknown []string, err error) {
	s := &ruleScanner{rest: text, line: 1}
	for s.skip(); s.rest != ""; s.skip() {
		line := s.line
		name := s.name()
		if name == "" {
			return nil, nil, s.errorf("expected a call such as prefix_rule(…)")
		}
		args, err := s.arguments()
		if err != nil {
			return nil, nil, err
		}
		if name != "prefix_rule" {
			unknown = append(unknown, name)
			continue
		}
		rule, err := newRule(args)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", line, err)
		}
		rules = append(rules, rule)
	}
	return rules, unknown, nil
}

// newRule makes a rule of the arguments of a call.
func newRule(args map[string]any) (PrefixRule, error) {
	r := PrefixRule{Decision: PrefixAllow}
	for name, v := range args {
		text, isText := v.(string)
		switch {
		case slices.Contains([]string{"pattern", "match", "not_match"}, name):
		case !slices.Contains([]string{"decision", "justification"}, name):
			return r, fmt.Errorf("prefix_rule has no argument %s", name)
		case !isText:
			return r, fmt.Errorf("%s must be a string", name)
		case name == "decision":
			r.Decision = PrefixDecision(text)
		default:
			r.Why = text
		}
	}
	if !slices.Contains(strictness[1:], r.Decision) {
		return r, fmt.Errorf("decision must be allow, prompt or forbidden, not %q", r.Decision)
	}
	words, _ := args["pattern"].([]any)
	for _, w := range words {
		alternatives, ok := stringList(w)
		if !ok {
			return r, fmt.Errorf("a word of pattern must be a string or a list of strings")
		}
		r.Pattern = append(r.Pattern, alternatives)
	}
	if len(r.Pattern) == 0 {
		return r, fmt.Errorf("pattern must be a list with at least one word")
	}
	return r, r.try(args)
}

// try checks the examples of a rule.
func (r PrefixRule) try(args map[string]any) error {
	for name, want := range map[string]bool{"match": true, "not_match": false} {
		if args[name] == nil {
			continue
		}
		list, ok := args[name].([]any)
		if !ok {
			return fmt.Errorf("%s must be a list", name)
		}
		for _, example := range list {
			words, ok := exampleWords(example)
			if !ok {
				return fmt.Errorf("an example in %s must be a command", name)
			}
			if r.fits(fromArgv(words)) != want {
				return fmt.Errorf("the example %q in %s is wrong: %s", strings.Join(words, " "), name, map[bool]string{true: "the pattern does not match it", false: "the pattern matches it"}[want])
			}
		}
	}
	return nil
}

func exampleWords(v any) ([]string, bool) {
	if text, ok := v.(string); ok {
		return SplitWords(text)
	}
	return stringList(v)
}

// stringList returns a string or a list of strings as a list, which is not empty.
func stringList(v any) ([]string, bool) {
	if text, ok := v.(string); ok {
		return []string{text}, true
	}
	list, ok := v.([]any)
	var out []string
	for _, item := range list {
		text, isText := item.(string)
		ok = ok && isText
		out = append(out, text)
	}
	return out, ok && len(out) > 0
}

// SplitWords returns the words of a simple command as it is written in a shell. It is false
// if there is more to it than words.
func SplitWords(text string) ([]string, bool) {
	list, ok := simples("bash", text, nil)
	if !ok || len(list) != 1 {
		return nil, false
	}
	var words []string
	for _, w := range list[0].words {
		if !w.plain() {
			return nil, false
		}
		words = append(words, w.text)
	}
	return words, true
}

// JoinWords is the reverse of SplitWords.
func JoinWords(words []string) (string, error) {
	quoted := make([]string, len(words))
	for i, w := range words {
		q, err := syntax.Quote(w, syntax.LangPOSIX)
		if err != nil {
			return "", fmt.Errorf("write %q as a word: %w", w, err)
		}
		quoted[i] = q
	}
	text := strings.Join(quoted, " ")
	if back, ok := SplitWords(text); !ok || !slices.Equal(back, words) {
		return "", fmt.Errorf("%q cannot be written as a command", words)
	}
	return text, nil
}

// A ruleScanner reads the part of Starlark that files of rules are written in.
type ruleScanner struct {
	rest string
	line int
}

func (s *ruleScanner) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", s.line, fmt.Sprintf(format, args...))
}

func (s *ruleScanner) advance(n int) {
	s.line += strings.Count(s.rest[:n], "\n")
	s.rest = s.rest[n:]
}

// skip passes over white space and comments.
func (s *ruleScanner) skip() {
	for s.rest != "" {
		switch c := s.rest[0]; {
		case strings.IndexByte(" \t\r\n;\\", c) >= 0:
			s.advance(1)
		case c == '#':
			end := strings.IndexByte(s.rest+"\n", '\n')
			s.advance(end)
		default:
			return
		}
	}
}

// take passes over a character, if it comes next.
func (s *ruleScanner) take(c byte) bool {
	s.skip()
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.advance(1)
	return true
}

func (s *ruleScanner) name() string {
	s.skip()
	n := 0
	for n < len(s.rest) && (s.rest[n] == '_' || s.rest[n]|0x20 >= 'a' && s.rest[n]|0x20 <= 'z' || n > 0 && s.rest[n] >= '0' && s.rest[n] <= '9') {
		n++
	}
	name := s.rest[:n]
	s.advance(n)
	return name
}

// arguments reads those of a call, each with its name.
func (s *ruleScanner) arguments() (map[string]any, error) {
	if !s.take('(') {
		return nil, s.errorf("expected (")
	}
	args := map[string]any{}
	for !s.take(')') {
		name := s.name()
		if name == "" || !s.take('=') {
			return nil, s.errorf("expected an argument such as pattern = […]")
		}
		if _, twice := args[name]; twice {
			return nil, s.errorf("%s is given twice", name)
		}
		v, err := s.value(0)
		if err != nil {
			return nil, err
		}
		args[name] = v
		if !s.take(',') {
			if !s.take(')') {
				return nil, s.errorf("expected , or )")
			}
			break
		}
	}
	return args, nil
}

// maxNesting bounds lists in lists.
const maxNesting = 8

// value reads a string, a list, or a word such as True.
func (s *ruleScanner) value(depth int) (any, error) {
	s.skip()
	switch {
	case depth > maxNesting:
		return nil, s.errorf("too many lists in each other")
	case s.rest != "" && (s.rest[0] == '"' || s.rest[0] == '\''):
		return s.text()
	case s.take('['):
		list := []any{}
		for !s.take(']') {
			v, err := s.value(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
			if !s.take(',') && (s.rest == "" || s.rest[0] != ']') {
				return nil, s.errorf("expected , or ]")
			}
		}
		return list, nil
	}
	if name := s.name(); name != "" {
		return bareWord(name), nil
	}
	return nil, s.errorf("expected a string or a list")
}

// A bareWord is a value that is neither a string nor a list.
type bareWord string

var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '"': "\"", '\'': "'", '\n': ""}

func (s *ruleScanner) text() (string, error) {
	quote := s.rest[0]
	var b strings.Builder
	for i := 1; i < len(s.rest) && s.rest[i] != '\n'; i++ {
		switch c := s.rest[i]; c {
		case quote:
			s.advance(i + 1)
			return b.String(), nil
		case '\\':
			i++
			if i == len(s.rest) {
				return "", s.errorf("the string does not end")
			}
			text, ok := escapes[s.rest[i]]
			if !ok {
				return "", s.errorf(`\%c is not supported in a string`, s.rest[i])
			}
			b.WriteString(text)
		default:
			b.WriteByte(c)
		}
	}
	return "", s.errorf("the string does not end")
}
