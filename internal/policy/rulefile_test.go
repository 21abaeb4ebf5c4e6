package policy

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseRules(t *testing.T) {
	got, unknown, err := ParseRules(`# my rules
prefix_rule(pattern=["git", ["push", 'fetch']], decision="prompt",
    justification = "it \"talks\" to others", # why
    match = ["git push origin", ["git", "fetch"]],
    not_match = ["git status"],
)
prefix_rule(pattern = ["make", "-n"])
network_rule(host = "example.com", decision = "allow")
prefix_rule(
    pattern = ["rm"], decision = "forbidden",
)
`)
	want := []PrefixRule{
		{Pattern: [][]string{{"git"}, {"push", "fetch"}}, Decision: PrefixPrompt, Why: `it "talks" to others`},
		{Pattern: [][]string{{"make"}, {"-n"}}, Decision: PrefixAllow},
		{Pattern: [][]string{{"rm"}}, Decision: PrefixForbid},
	}
	if err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(unknown, []string{"network_rule"}) {
		t.Errorf("got %+v %v %v", got, unknown, err)
	}
}

func TestParseRulesRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`prefix_rule(`:                                        "line 1: expected an argument",
		"\n\nprefix_rule(pattern=[])":                         "line 3: pattern must be a list with at least one word",
		`prefix_rule(pattern="git")`:                          "pattern must be a list",
		`prefix_rule(pattern=["git", 1])`:                     "expected a string or a list",
		`prefix_rule(pattern=[True])`:                         "a word of pattern must be a string",
		`prefix_rule(pattern=["git"], decision="ask")`:        `decision must be allow, prompt or forbidden, not "ask"`,
		`prefix_rule(pattern=["git"], decison="allow")`:       "prefix_rule has no argument decison",
		`prefix_rule(pattern=["git"], pattern=["x"])`:         "pattern is given twice",
		`prefix_rule(pattern=["git], decision="allow")`:       "expected , or ]",
		`prefix_rule(pattern=["git"], match=["hg log"])`:      `the example "hg log" in match is wrong: the pattern does not match it`,
		`prefix_rule(pattern=["git"], not_match=["git log"])`: `the example "git log" in not_match is wrong: the pattern matches it`,
		`x = 1`: "expected (",
		"prefix_rule(pattern=[" + strings.Repeat("[", 99): "too many lists",
		`prefix_rule(pattern=["a\`:                        "the string does not end",
	} {
		if _, _, err := ParseRules(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func FuzzParseRules(f *testing.F) {
	f.Add(`prefix_rule(pattern=["git", ["push"]], decision="prompt", match=["git push"])`)
	f.Fuzz(func(t *testing.T, text string) {
		rules, _, err := ParseRules(text)
		for _, r := range rules {
			if len(r.Pattern) == 0 || r.Decision == "" || err != nil {
				t.Errorf("got %+v, %v", r, err)
			}
		}
	})
}

func TestWordsSurvive(t *testing.T) {
	for _, words := range [][]string{{"make", "-n"}, {"./a b", "it's"}, {"a$b", "*"}} {
		text, err := JoinWords(words)
		if err != nil {
			t.Errorf("%q: %v", words, err)
			continue
		}
		if back, ok := SplitWords(text); !ok || !reflect.DeepEqual(back, words) {
			t.Errorf("%q: %q became %q", words, text, back)
		}
	}
	for _, bad := range []string{"a; b", "a > b", "a $x", "", "a *"} {
		if words, ok := SplitWords(bad); ok {
			t.Errorf("%q: got %q", bad, words)
		}
	}
}
