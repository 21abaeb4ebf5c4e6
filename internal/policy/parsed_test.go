package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsed(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{`cat src/a.go`, `[{"type":"read","cmd":"cat src/a.go","name":"a.go"}]`},
		{`cat -- -x`, `[{"type":"read","cmd":"cat -- -x","name":"-x"}]`},
		{`head -n 20 a.txt`, `[{"type":"read","cmd":"head -n 20 a.txt","name":"a.txt"}]`},
		{`nl -ba a.txt | sed -n '1,80p'`, `[{"type":"read","cmd":"nl -ba a.txt","name":"a.txt"}]`},
		{`sed -n 1,5p "a b.txt"`, `[{"type":"read","cmd":"sed -n 1,5p \"a b.txt\"","name":"a b.txt"}]`},
		{`sed -i s/a/b/ a.txt`, `[{"type":"unknown","cmd":"sed -i s/a/b/ a.txt"}]`},
		{`ls`, `[{"type":"list_files","cmd":"ls"}]`},
		{`ls -la src 2>/dev/null`, `[{"type":"list_files","cmd":"ls -la src 2>/dev/null","path":"src"}]`},
		{`ls > out`, `[{"type":"unknown","cmd":"ls > out"}]`},
		{`ls 1>/dev/null`, `[{"type":"unknown","cmd":"ls 1>/dev/null"}]`},
		{`cat; ls`, `[{"type":"unknown","cmd":"cat; ls"}]`},
		{`ls 2>&1`, `[{"type":"list_files","cmd":"ls 2>&1"}]`},
		{`ls 2>out`, `[{"type":"unknown","cmd":"ls 2>out"}]`},
		{`rg --files src | head -n 5`, `[{"type":"list_files","cmd":"rg --files src","path":"src"}]`},
		{`git ls-files`, `[{"type":"list_files","cmd":"git ls-files"}]`},
		{`cd x && rg -n -A 3 'func main' src`, `[{"type":"search","cmd":"rg -n -A 3 'func main' src","query":"func main","path":"src"}]`},
		{`grep -rn -e foo src`, `[{"type":"search","cmd":"grep -rn -e foo src","query":"foo","path":"src"}]`},
		{`ls | grep foo`, `[{"type":"list_files","cmd":"ls"},{"type":"search","cmd":"grep foo","query":"foo"}]`},
		{`find src -name '*.go'`, `[{"type":"search","cmd":"find src -name '*.go'","query":"*.go","path":"src"}]`},
		{`find . -type f`, `[{"type":"list_files","cmd":"find . -type f","path":"."}]`},
		{`find . -delete`, `[{"type":"unknown","cmd":"find . -delete"}]`},
		{`find . -name`, `[{"type":"list_files","cmd":"find . -name","path":"."}]`},
		{`cat a; ls b`, `[{"type":"read","cmd":"cat a","name":"a"},{"type":"list_files","cmd":"ls b","path":"b"}]`},
		{`go test ./...`, `[{"type":"test","cmd":"go test ./..."}]`},
		{`npm test`, `[{"type":"test","cmd":"npm test"}]`},
		{`gofmt -l a.go`, `[{"type":"format","cmd":"gofmt -l a.go","tool":"gofmt","targets":["a.go"]}]`},
		{`cargo fmt`, `[{"type":"format","cmd":"cargo fmt","tool":"cargo fmt"}]`},
		{`go vet ./...`, `[{"type":"lint","cmd":"go vet ./...","tool":"go vet","targets":["./..."]}]`},
		{`cd x`, `[{"type":"noop","cmd":"cd x"}]`},
		{`cd x && echo a && true`, `[{"type":"noop","cmd":"cd x"}]`},
		{`cat a | wc -l`, `[{"type":"read","cmd":"cat a","name":"a"}]`},
		{`wc -l a`, `[{"type":"unknown","cmd":"wc -l a"}]`},
		{`cat`, `[{"type":"unknown","cmd":"cat"}]`},
		{`cat a && rm a`, `[{"type":"unknown","cmd":"cat a && rm a"}]`},
		{`ls | xargs rm`, `[{"type":"unknown","cmd":"ls | xargs rm"}]`},
		{`cat $(evil)`, `[{"type":"unknown","cmd":"cat $(evil)"}]`},
		{`cat a &`, `[{"type":"unknown","cmd":"cat a &"}]`},
		{`go`, `[{"type":"unknown","cmd":"go"}]`},
		{``, `[{"type":"unknown","cmd":""}]`},
	} {
		if diff := cmp.Diff(c.want, parsedJSON(t, []string{"bash", "-lc", c.script})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.script, diff)
		}
	}
}

func TestParsedArguments(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"/bin/cat", "a b"}, `[{"type":"read","cmd":"/bin/cat 'a b'","name":"a b"}]`},
		{[]string{"make", "install"}, `[{"type":"unknown","cmd":"make install"}]`},
		{[]string{"make", "\x00"}, `[{"type":"unknown","cmd":"make \u0000"}]`},
		{nil, `[{"type":"unknown","cmd":""}]`},
		{[]string{""}, `[{"type":"unknown","cmd":"''"}]`},
		{[]string{"bash", "-c"}, `[{"type":"unknown","cmd":"bash -c"}]`},
	} {
		if diff := cmp.Diff(c.want, parsedJSON(t, c.argv)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.argv, diff)
		}
	}
}

func parsedJSON(t *testing.T, argv []string) string {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(Parsed(argv)); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Whatever the snippets are, the answer is one of the types of the wire.
func TestParsedTypes(t *testing.T) {
	known := set("read list_files search format test lint noop unknown")
	for _, s := range snippets(t) {
		for _, p := range Parsed(s.argv) {
			if !known[p.Type] {
				t.Errorf("snippets.txt:%d: %q is a %q", s.line, s.argv, p.Type)
			}
		}
	}
}
