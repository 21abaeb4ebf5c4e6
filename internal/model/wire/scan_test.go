package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func members(data string) ([][2]string, error) {
	var got [][2]string
	m := Scan([]byte(data))
	for m.Next() {
		got = append(got, [2]string{string(m.Key), string(m.Value)})
	}
	return got, m.Err()
}

func TestScan(t *testing.T) {
	tests := map[string][][2]string{
		`{}`:            nil,
		` { } `:         nil,
		`{"a":1}`:       {{"a", "1"}},
		`{"a":"x\"y"}`:  {{"a", `"x\"y"`}},
		`{"a":"x\\"}`:   {{"a", `"x\\"`}},
		`{"a\u0062":1}`: {{"ab", "1"}},
		" {\n\"a\" : [ 1 , {\"b\":\"]\"} ] , \"c\": null }\n": {{"a", `[ 1 , {"b":"]"} ]`}, {"c", "null"}},
		`{"a":{"b":{"c":[[],{}]}},"d":-1.5e+3,"e":true}`:      {{"a", `{"b":{"c":[[],{}]}}`}, {"d", "-1.5e+3"}, {"e", "true"}},
	}
	for in, want := range tests {
		got, err := members(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", in, d)
		}
	}
}

func TestScanRefuses(t *testing.T) {
	for _, in := range []string{
		``, `[]`, `"a"`, `{`, `{"a"`, `{"a"}`, `{"a":`, `{"a":}`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{"a":"x}`, `{"a":[1}`[:7],
		`{a:1}`, `{"a":1}x`, `{"a":1}{"b":2}`, `{"a" 1}`, `{"a":,}`, `{"a":1 2}`, `{"a":]}`, `{"a\u00zz":1}`, `{"a":(}`, "{\"a\\\":1}",
	} {
		if got, err := members(in); err == nil {
			t.Errorf("%s: no error, members %v", in, got)
		}
	}
}

func TestScanArray(t *testing.T) {
	for in, want := range map[string][]string{
		`[]`: nil, ` [ ] `: nil, `[1]`: {"1"}, ` [ 1 , "a]" ,{"b":[2,3]}, null ] `: {"1", `"a]"`, `{"b":[2,3]}`, "null"},
	} {
		var got []string
		e := ScanArray([]byte(in))
		for e.Next() {
			got = append(got, string(e.Value))
		}
		if d := cmp.Diff(want, got); d != "" || e.Err() != nil {
			t.Errorf("%s: %v (-want +got):\n%s", in, e.Err(), d)
		}
	}
	for _, in := range []string{``, `{}`, `[`, `[1`, `[1,`, `[,]`, `[1 2]`, `[1]2`, `["a]`} {
		e := ScanArray([]byte(in))
		for e.Next() {
		}
		if e.Err() == nil {
			t.Errorf("%s: no error", in)
		}
	}
}

func TestEveryProperPrefixOfAnObjectIsRefused(t *testing.T) {
	whole := `{"type":"x","item":{"arguments":"{\"command\":[\"ls\"]}","n":[1,2]},"u":"\u00e9\\"}`
	if _, err := members(whole); err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if _, err := members(whole[:n]); err == nil {
			t.Errorf("%s: no error", whole[:n])
		}
	}
}

func TestString(t *testing.T) {
	for in, want := range map[string]string{`""`: "", `"abc"`: "abc", `"a\nb"`: "a\nb", `"\u00e9é"`: "éé", `"\ud83d\ude00"`: "😀", "\"\xff\"": "\ufffd"} {
		if got, ok := String([]byte(in)); !ok || got != want {
			t.Errorf("String(%s) = %q, %v, want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{``, `"`, `1`, `null`, `"a`, `"\x"`, "\"a\nb\"", `"a"b"`} {
		if got, ok := String([]byte(in)); ok {
			t.Errorf("String(%s) = %q, want none", in, got)
		}
	}
}

func TestInt(t *testing.T) {
	if n, ok := Int([]byte("-12")); !ok || n != -12 {
		t.Errorf("Int(-12) = %d, %v", n, ok)
	}
	for _, in := range []string{"", "1.5", "null", `"1"`} {
		if n, ok := Int([]byte(in)); ok {
			t.Errorf("Int(%s) = %d, want none", in, n)
		}
	}
}

func TestAppendStringIsWhatJSONReads(t *testing.T) {
	for _, s := range []string{"", "plain", "a\"b\\c", "\x00\x1f\n\r\t\x7f", "é😀", "a\xffb\xc3", "<script>&", "\u2028"} {
		var got string
		if err := json.Unmarshal(AppendString(nil, s), &got); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); got != want {
			t.Errorf("%q came back as %q", s, got)
		}
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\"b\\c\x00\xff é")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(AppendString(nil, s), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if want := string([]rune(s)); got != want {
			t.Errorf("%q came back as %q", s, got)
		}
	})
}

// FuzzScan compares with encoding/json: what that accepts as an object has the
// same members here.
func FuzzScan(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[{"c":"\""}]}`, `{"a\u0062":"x","d":null}`, `{"a":1}}`, ` {"":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if !json.Valid(in) || !bytes.HasPrefix(bytes.TrimSpace(in), []byte("{")) {
			m := Scan(in)
			for m.Next() { // must neither panic nor loop
			}
			return
		}
		got := map[string]string{}
		m := Scan(in)
		for m.Next() {
			got[strings.ToValidUTF8(string(m.Key), "\ufffd")] = string(m.Value)
		}
		if m.Err() != nil {
			t.Fatalf("%s: %v", in, m.Err())
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(in, &want); err != nil {
			t.Skip()
		}
		for k, v := range want {
			if strings.Contains(k, "\ufffd") {
				return // keys that are not UTF-8 are replaced byte by byte there
			}
			if got[k] != string(v) {
				t.Errorf("%s: member %q is %s, want %s", in, k, got[k], v)
			}
		}
	})
}
