package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseOverride(t *testing.T) {
	type result struct {
		path  []string
		value any
	}
	for arg, want := range map[string]result{
		`model=o3`:             {[]string{"model"}, "o3"},
		`model="o3"`:           {[]string{"model"}, "o3"},
		`model='o3'`:           {[]string{"model"}, "o3"},
		` model = o3 `:         {[]string{"model"}, "o3"},
		`model=`:               {[]string{"model"}, ""},
		`model=a=b`:            {[]string{"model"}, "a=b"},
		`model="C:\dir"`:       {[]string{"model"}, `C:\dir`},
		`model='it's'`:         {[]string{"model"}, "it's"},
		`model=say "hi"`:       {[]string{"model"}, `say "hi"`},
		`model="`:              {[]string{"model"}, `"`},
		"model=a\nb=1":         {[]string{"model"}, "a\nb=1"},
		"n=1\nother=2":         {[]string{"n"}, "1\nother=2"},
		"n=1 # why":            {[]string{"n"}, int64(1)},
		`a.b.c=true`:           {[]string{"a", "b", "c"}, true},
		`a . b =1`:             {[]string{"a", "b"}, int64(1)},
		`x.a b=[1, "2"]`:       {[]string{"x", "a b"}, []any{int64(1), "2"}},
		`projects."/a.b=c".t=`: {[]string{"projects", "/a.b=c", "t"}, ""},
		`'a.b'.c=1.5`:          {[]string{"a.b", "c"}, 1.5},
		`"tab\t" . 'q' = 0x10`: {[]string{"tab\t", "q"}, int64(16)},
		`a"b=1`:                {[]string{`a"b`}, int64(1)},
		`"a\"b\\".c=1`:         {[]string{`a"b\`, "c"}, int64(1)},
		`t={}`:                 {[]string{"t"}, map[string]any{}},
		`t={a={b=1},c=[]}`:     {[]string{"t"}, map[string]any{"a": map[string]any{"b": int64(1)}, "c": []any{}}},
	} {
		path, n, err := parseOverride(arg)
		if err != nil {
			t.Errorf("%q: %v", arg, err)
			continue
		}
		if diff := cmp.Diff(want, result{path, n.plain()}, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", arg, diff)
		}
		if n.placed() {
			t.Errorf("%q: the value claims a position in a file", arg)
		}
	}
}

// plain is the tree as maps.
func (n *node) plain() any {
	if !n.isTable() {
		return n.value
	}
	m := map[string]any{}
	for name, c := range n.child {
		m[name] = c.plain()
	}
	return m
}

func (n *node) placed() bool {
	for _, c := range n.child {
		if c.placed() {
			return true
		}
	}
	return n.at != position{} || n.begin != position{}
}

func TestOverridesMerge(t *testing.T) {
	root := &node{}
	for _, arg := range []string{
		"t={a=1, b=1}", "t.b=2", "t={c=3}", "t={}", // tables merge
		"v.x=1", "v=2", // a value replaces a table
		"w=1", "w.x=2", // and a table a value
		"l=[1,2]", "l=[3]", // an array is replaced
	} {
		path, n, err := parseOverride(arg)
		if err != nil {
			t.Fatal(err)
		}
		root.set(path, n)
	}
	want := map[string]any{
		"t": map[string]any{"a": int64(1), "b": int64(2), "c": int64(3)},
		"v": int64(2), "w": map[string]any{"x": int64(2)}, "l": []any{int64(3)},
	}
	if diff := cmp.Diff(any(want), root.plain()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOverrideOfJSON(t *testing.T) {
	var values map[string]any
	d := json.NewDecoder(strings.NewReader(`{"s":"a\"b\n\u0001é","n":3,"f":1.5,"big":12345678901,"t":true,"z":null,"l":[1,"x",[]],"o":{"a b":{"c":1}}}`))
	if err := d.Decode(&values); err != nil {
		t.Fatal(err)
	}
	values["num"] = json.Number("7")
	want := map[string]any{
		"s": "a\"b\n\u0001é", "n": int64(3), "f": 1.5, "big": int64(12345678901), "t": true, "z": "", "num": int64(7),
		"l": []any{int64(1), "x", []any{}}, "o": map[string]any{"a b": map[string]any{"c": int64(1)}},
	}
	got := map[string]any{}
	for key, v := range values {
		path, n, err := parseOverride(Override(key, v))
		if err != nil || len(path) != 1 || path[0] != key {
			t.Fatalf("%s: %v %v %v", Override(key, v), path, n, err)
		}
		got[key] = n.plain()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := Override("a.b", 3); s != "a.b=3" {
		t.Errorf("an int became %q", s)
	}
}

func TestQuoteIsRead(t *testing.T) {
	for _, s := range []string{"", "a", `"\`, "\n\r\t\b\f\x00\x7f", "é€😀", "\u2028\u200b", "' '"} {
		n, ok := parseValue(quote(s))
		if !ok || n.value != s {
			t.Errorf("quote(%q) = %s, read as %v", s, quote(s), n)
		}
		n, f := parse([]byte(formatKey([]string{"a", s}) + " = 1"))
		if f != nil || n.child["a"].names[0] != s {
			t.Errorf("formatKey(%q) = %s", s, formatKey([]string{"a", s}))
		}
	}
}

func TestShortenKeepsRunesWhole(t *testing.T) {
	if got := shorten(strings.Repeat("é", 100)); got != strings.Repeat("é", 20)+"…" {
		t.Errorf("got %q", got)
	}
	if got := shorten("short"); got != "short" {
		t.Errorf("got %q", got)
	}
}

func ExampleOverride() {
	fmt.Println(Override("sandbox_workspace_write.writable_roots", []any{"/a", "/b"}))
	// Output: sandbox_workspace_write.writable_roots=["/a", "/b"]
}
