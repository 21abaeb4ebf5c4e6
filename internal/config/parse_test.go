package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

func TestSyntaxErrorsHaveAPlaceAndAKey(t *testing.T) {
	const unquoted, missing = "this is not a value; a string needs quotes", "there is no value"
	for text, want := range map[string]string{
		"model = gpt-5":            "1:9 model " + unquoted,
		"a = 1\r\n[t]\r\nx.y = @":  "3:7 t.x.y " + unquoted,
		"model = fast":             "1:9 model " + unquoted,
		"a = tru":                  "1:5 a " + unquoted,
		"model =":                  "1:8 model " + missing,
		"model = # later\n":        "1:9 model " + missing,
		"a = 1\nmodel =  \n":       "2:10 model " + missing,
		"x = 1 2":                  "1:7 x expected newline but got U+0032 '2'",
		"a = \"secret\\q\"":        "1:13 a invalid escaped character U+0071 'q'",
		"model":                    "1:1  expected = after a key, but the document ends there",
		"[a\n":                     "1:3  expected character ]",
		"a = {":                    "1:6 a expected character } but the document ended here",
		"\xef\xbb\xbfa = 1\nb = {": "2:6 b expected character } but the document ended here",
		"a = 01":                   "1:5 a leading zero not allowed on decimal number",
		"a = 1\n[b]\nc = 99999999999999999999\nd = 2": "3:5 b.c couldn't parse decimal number",
		"a = 1\na = 2":                       "2:1 a key a is already defined at line 1",
		"a.b = 1\n[x]\ny=1\n[a]\n":           "4:2 a table a already exists at line 1",
		"[a]\n[[b]]\nc=1\n[[b]]\nc=2\n[b]\n": "6:2 b key b should be a table, not a array table",
		"a = {b = 1, b = 2}":                 "1:1 a key b is already defined",
	} {
		_, f := parse([]byte(text))
		if f == nil {
			t.Errorf("%q was accepted", text)
			continue
		}
		if got := fmt.Sprintf("%d:%d %s %s", f.line, f.column, f.key, f.text); got != want {
			t.Errorf("%q\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestParseKeepsOrderAndPositions(t *testing.T) {
	n, f := parse([]byte("\xef\xbb\xbfb = 1\n'x y'.z = [\n 1]\n[t.u]\n  in = {q  =  'v', r = {}}\n[[list]]\na = 1\n[list.sub]\n"))
	if f != nil {
		t.Fatal(f)
	}
	var got strings.Builder
	var walk func(n *node, path []string)
	walk = func(n *node, path []string) {
		for _, name := range n.names {
			c := n.child[name]
			fmt.Fprintf(&got, "%s %v %v %v\n", formatKey(append(path, name)), c.at, c.begin, c.value)
			walk(c, append(path, name))
		}
	}
	walk(n, nil)
	const want = `b {1 1} {1 5} 1
"x y" {2 1} {0 0} <nil>
"x y".z {2 7} {2 11} [1]
t {4 2} {0 0} <nil>
t.u {4 4} {0 0} <nil>
t.u.in {5 3} {5 8} <nil>
t.u.in.q {5 9} {5 15} v
t.u.in.r {5 20} {5 24} <nil>
list {6 3} {0 0} [map[a:1 sub:map[]]]
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

// A policy is checked by its own method when it is decoded.
type policy string

func (p *policy) UnmarshalText(text []byte) error {
	if string(text) != "never" {
		return fmt.Errorf("%q is no policy", text)
	}
	*p = policy(text)
	return nil
}

// Some versions of the library do not call UnmarshalText of a type that is a
// string underneath, and store whatever the file says without an error. For the policy
// that says what may run unasked that would be a hole, so nothing here relies on
// it: TestBadEnumsAreRefusedEverywhere is the promise, and this the reason. If it fails, the
// version in go.mod was changed for one of those.
func TestLibraryCallsUnmarshalText(t *testing.T) {
	var v struct{ P policy }
	if err := toml.Unmarshal([]byte(`p = "anything"`), &v); err == nil {
		t.Errorf("a policy %q was decoded without asking its UnmarshalText", v.P)
	}
}

func TestBadEnumsAreRefusedEverywhere(t *testing.T) {
	const bad = "no such thing"
	checked := 0
	schema().each(func(k *key) {
		if k.kind != enumKind {
			return
		}
		checked++
		name := strings.ReplaceAll(k.name(), "*", "x")
		line := name + " = " + quote(bad)
		places := map[string]Options{
			"file":     {Home: homeWith(t, line)},
			"override": {Home: t.TempDir(), Overrides: []string{line}},
			"raw":      {Home: t.TempDir(), Overrides: []string{name + "=" + bad}},
		}
		if !k.global {
			places["profile"] = Options{Home: homeWith(t, "[profiles.p]\n"+line), Profile: "p"}
			places["unused profile"] = Options{Home: homeWith(t, "[profiles.p]\n"+line)}
		}
		for place, o := range places {
			_, _, err := Load(o)
			if err == nil {
				t.Errorf("%s in the %s: %q was accepted", name, place, bad)
				continue
			}
			for _, part := range append([]string{name, bad}, k.allowed...) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s in the %s: %q does not say %q", name, place, err, part)
				}
			}
		}
	})
	if checked < 10 {
		t.Errorf("only %d keys were checked", checked)
	}
}

func homeWith(t testing.TB, text string) string {
	t.Helper()
	home := t.TempDir()
	write(t, home+"/"+FileName, text)
	return home
}
