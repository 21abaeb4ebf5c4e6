package exec

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	p "github.com/fermata-agent/fermata/protocol"
)

// startAsked starts a turn in which a call asks for approval, at a terminal on which a person
// then types.
func startAsked(t *testing.T, a *Prompt) (*run, io.Writer) {
	t.Helper()
	in, typed := io.Pipe()
	t.Cleanup(func() { typed.Close() })
	a.In = in
	r := start(t, func(o *Options) { o.ErrTerminal, o.Plain, o.Prompt = true, true, a })
	m := r.e.Request()
	m.Call("c", "work", "{}")
	m.End()
	r.e.Run().Ask("make", "all")
	synctest.Wait()
	return r, typed
}

func TestAPersonAnswers(t *testing.T) {
	for _, c := range []struct {
		typed string
		want  p.Decision
	}{
		{"y\n", p.Approved},
		{"YES \n", p.Approved},
		{"a\n", p.ApprovedForSession},
		{"what?\n\nn\n", p.Denied},
		{"s\n", p.Abort},
		{"p\n", p.Approved},
	} {
		synctest.Test(t, func(t *testing.T) {
			remembered := false
			r, person := startAsked(t, &Prompt{Offer: func(*p.ApprovalRequested) (string, func() error, bool) {
				return "always", func() error { remembered = true; return nil }, true
			}})
			if got := r.err.String(); !strings.HasSuffix(got, "allow this? ") || !strings.Contains(got, "p yes, and always") {
				t.Fatalf("the question:\n%s", got)
			}
			if _, err := io.WriteString(person, c.typed); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			var got p.Decision
			snap, err := r.e.Resume(t.Context(), r.id)
			if err != nil {
				t.Fatal(err)
			}
			for e := range r.e.Subscribe(t.Context(), r.id, 0) {
				if b, ok := e.Body.(*p.ApprovalResolved); ok {
					got = b.Decision
				}
				if e.Seq >= snap.Last {
					break
				}
			}
			if got != c.want || remembered != (c.typed == "p\n") {
				t.Errorf("%q: decision %q, want %q; remembered %t", c.typed, got, c.want, remembered)
			}
			r.cancel()
			<-r.done
		})
	}
}

// Whoever leaves the terminal is nobody to ask.
func TestAPersonWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, person := startAsked(t, &Prompt{})
		person.(io.Closer).Close()
		synctest.Wait()
		r.e.Request().Answer("then not")
		<-r.done
		if !strings.Contains(r.err.String(), "(declined") {
			t.Errorf("stderr\n%s", r.err.String())
		}
	})
}

func TestRefusalsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		r := start(t, func(o *Options) {
			o.Refused = func(r Refusal) { got = append(got, fmt.Sprintf("%s: %s (%s)", r.What, r.Why, r.Reason)) }
		})
		m := r.e.Request()
		m.Call("c", "work", "{}")
		m.End()
		r.e.Run().Return(p.ToolOutput{Output: "no", Failed: true, Refused: "not allowed", RefusedFor: p.RefusedByRule})
		m = r.e.Request()
		m.Call("d", "work", "{}")
		m.End()
		r.e.Run().Ask("make")
		r.e.Request().Answer("done")
		<-r.done
		if want := "work: not allowed (rule)\nmake: why not ()"; strings.Join(got, "\n") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
