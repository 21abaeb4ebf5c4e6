package protocol

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"
)

var uuid7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestConversationIDIsAUUIDv7(t *testing.T) {
	seen := map[ConversationID]bool{}
	for range 2000 {
		id := NewConversationID(someTime)
		if !uuid7.MatchString(string(id)) {
			t.Fatalf("%s is not a UUIDv7", id)
		}
		if seen[id] {
			t.Fatalf("%s was made twice", id)
		}
		seen[id] = true
		if got, err := ParseConversationID(string(id)); err != nil || got != id {
			t.Fatalf("%s is read as %s, %v", id, got, err)
		}
	}
}

func TestConversationIDsSortByTime(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	at := someTime
	var ids []ConversationID
	for range 1000 {
		at = at.Add(time.Duration(1+r.IntN(1e6)) * time.Millisecond)
		ids = append(ids, NewConversationID(at))
		if got := ids[len(ids)-1].Time(); !got.Equal(at) {
			t.Fatalf("made at %v, says %v", at, got)
		}
	}
	if !slices.IsSorted(ids) {
		t.Error("the ids do not sort by the time of their making")
	}
}

func TestConversationIDTime(t *testing.T) {
	for _, tt := range []struct {
		id   ConversationID
		want time.Time
	}{
		{"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC)}, // the example of RFC 9562
		{NewConversationID(someTime.Add(999 * time.Microsecond)), someTime},                       // to the millisecond
		{NewConversationID(someTime.In(time.FixedZone("x", 3600))), someTime},
		{"", time.Time{}},
		{"short", time.Time{}},
		{"zzzzzzzz-zzzz-7zzz-8zzz-zzzzzzzzzzzz", time.Time{}},
	} {
		if got := tt.id.Time(); got != tt.want {
			t.Errorf("%q: got %v, want %v", tt.id, got, tt.want)
		}
	}
}

func TestParseConversationID(t *testing.T) {
	const good = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
	for _, tt := range []struct{ in, want string }{
		{good, good},
		{"017F22E2-79B0-7CC3-98C4-DC0C0C07398F", good},
		{"", ""},
		{good[:35], ""},
		{good + "0", ""},
		{"017f22e279b07cc398c4dc0c0c07398f", ""},
		{"017f22e2-79b0-7cc3-98c4-dc0c0c07398g", ""},
		{"017f22e2-79b0-7cc3-98c4_dc0c0c07398f", ""},
		{"../../../../../../../../etc/passwd00", ""},
		{"----017f22e279b07cc398c4dc0c0c07398f", ""},
		{"0-17f22e2-79b0-7cc398c4-dc0c0c07398f", ""},
	} {
		got, err := ParseConversationID(tt.in)
		if string(got) != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q: got %q, %v, want %q", tt.in, got, err, tt.want)
		}
	}
}

func TestItemIDText(t *testing.T) {
	for _, tt := range []struct {
		id   ItemID
		text string
	}{
		{ItemID{}, "0.0.0"},
		{ItemID{Turn: 3, Response: 1}, "3.1.0"},
		{ItemID{Turn: 12, Response: 345, Index: 6789}, "12.345.6789"},
	} {
		if got := tt.id.String(); got != tt.text {
			t.Errorf("%#v is written %s, want %s", tt.id, got, tt.text)
		}
		if got, err := ParseItemID(tt.text); err != nil || got != tt.id {
			t.Errorf("%s is read as %#v, %v", tt.text, got, err)
		}
		data, err := json.Marshal(map[ItemID]ItemID{tt.id: tt.id})
		if want := `{"` + tt.text + `":"` + tt.text + `"}`; err != nil || string(data) != want {
			t.Errorf("JSON is %s, %v, want %s", data, err, want)
		}
		var got map[ItemID]ItemID
		if err := json.Unmarshal(data, &got); err != nil || got[tt.id] != tt.id {
			t.Errorf("%s is read as %v, %v", data, got, err)
		}
	}
}

func TestParseItemIDRefuses(t *testing.T) {
	for _, in := range []string{
		"", ".", "..", "1.2", "1.2.3.4", "a.1.1", "1.a.1", "1.1.a", "-1.1.1", "1.-1.1", "1.1.-1", "1.1.1 ",
		"1,1,1", "0x1.1.1", "1.1.99999999999999999999",
	} {
		got, err := ParseItemID(in)
		if err == nil || got != (ItemID{}) {
			t.Errorf("%q is read as %#v, %v", in, got, err)
		}
		id := ItemID{9, 9, 9}
		if err := id.UnmarshalText([]byte(in)); err == nil || id != (ItemID{9, 9, 9}) {
			t.Errorf("%q is read into %#v, %v", in, id, err)
		}
	}
}

func FuzzParseItemID(f *testing.F) {
	f.Add("1.2.3")
	f.Add("0.0.0")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseItemID(s)
		if err != nil {
			return
		}
		if again, err := ParseItemID(id.String()); err != nil || again != id {
			t.Errorf("%q is %#v, which is read back as %#v, %v", s, id, again, err)
		}
	})
}
