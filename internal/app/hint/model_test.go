package hint

import (
	"context"
	"errors"
	"testing"

	"github.com/fermata-agent/fermata/engine"
	p "github.com/fermata-agent/fermata/protocol"
)

func TestModelThatWasMeant(t *testing.T) {
	known := func() []string { return []string{"gpt-5", "gpt-5-mini"} }
	other := errors.New("other")
	for _, c := range []struct {
		name string
		err  error
		want string // the hint
	}{
		{"gpt-5-mni", &p.Error{Kind: p.ErrorUnknownModel, Hint: "check"}, "did you mean gpt-5-mini? Choose it with -m"},
		{"something", &p.Error{Kind: p.ErrorUnknownModel, Hint: "check"}, "check"},
		{"gpt-5-mini", &p.Error{Kind: p.ErrorUnknownModel, Hint: "check"}, "check"}, // no access to it
		{"gpt-5-mni", &p.Error{Kind: p.ErrorAuth, Hint: "key"}, "key"},
		{"gpt-5-mni", other, ""},
	} {
		failing := engine.ModelFunc(func(context.Context, engine.Request, *engine.Reply) error { return c.err })
		err := OfModel(failing, c.name, known).Stream(t.Context(), engine.Request{}, nil)
		var e *p.Error
		if errors.As(err, &e) && e.Hint != c.want || c.want == "" && !errors.Is(err, other) {
			t.Errorf("%s: %v, %+v", c.name, err, e)
		}
	}
}
