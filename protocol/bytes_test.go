package protocol

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// What a command prints is kept byte for byte, and whoever looks only at the text
// finds valid text.
func TestBytesSurviveJSON(t *testing.T) {
	for _, s := range []string{"", "text ü", "\xff\xfe\x00", "latin1 \xe9t\xe9\n", "cut \xe2\x82"} {
		result := CommandResult{ExitCode: 1, Output: s, Stderr: [][2]int{{0, len(s)}}}
		delta := Delta{Item: ItemID{1, 2, 3}, Kind: DeltaStdout, Offset: 7, Text: s}
		var gotResult CommandResult
		var gotDelta Delta
		a := roundTrip(t, result, &gotResult)
		b := roundTrip(t, &delta, &gotDelta)
		if d := cmp.Diff(result, gotResult) + cmp.Diff(delta, gotDelta); d != "" {
			t.Errorf("%q: %s", s, d)
		}
		if has := strings.Contains(a+b, "base64"); has == utf8.ValidString(s) {
			t.Errorf("%q: %s %s", s, a, b)
		}
		var plain struct{ Output, Text string }
		if json.Unmarshal([]byte(a), &plain) != nil || json.Unmarshal([]byte(b), &plain) != nil || !utf8.ValidString(plain.Output+plain.Text) {
			t.Errorf("%q: a reader of text finds %+v", s, plain)
		}
		if got := Shorten(s); !utf8.ValidString(got) {
			t.Errorf("a model is shown %q", got)
		}
	}
}

func roundTrip(t *testing.T, in, out any) string {
	t.Helper()
	b, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(b, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
