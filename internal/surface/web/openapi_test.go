package web

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	p "github.com/fermata-agent/fermata/protocol"
)

type apiFile struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"content"`
		} `json:"responses"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`
}

func readAPI(t *testing.T) apiFile {
	t.Helper()
	var f apiFile
	if err := json.Unmarshal([]byte(openAPIJSON), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// Every route of the API is in the file, and nothing else is.
func TestOpenAPIHasTheRoutes(t *testing.T) {
	f := readAPI(t)
	var described, served []string
	for path, methods := range f.Paths {
		for m := range methods {
			described = append(described, strings.ToUpper(m)+" "+path)
		}
	}
	for _, r := range routes() {
		if strings.HasPrefix(r.path, "/api/") {
			served = append(served, r.method+" "+r.path)
		}
	}
	slices.Sort(described)
	slices.Sort(served)
	if d := cmp.Diff(served, described); d != "" {
		t.Errorf("-served +described:\n%s", d)
	}
}

// schema resolves one of the file's schemas; references are to its components.
func (f apiFile) schema(t *testing.T, raw json.RawMessage) *jsonschema.Resolved {
	t.Helper()
	text := strings.ReplaceAll(string(raw), "#/components/schemas/", "#/$defs/")
	defs, _ := json.Marshal(f.Components.Schemas)
	whole := `{"$defs":` + strings.ReplaceAll(string(defs), "#/components/schemas/", "#/$defs/") + `,"allOf":[` + text + `]}`
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(whole), &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// check compares an answer with what the file says of it.
func (f apiFile) check(t *testing.T, method, path string, status int, body string) {
	t.Helper()
	op, ok := f.Paths[path][strings.ToLower(method)]
	if !ok {
		t.Fatalf("%s %s is not described", method, path)
	}
	code := map[int]string{200: "200", 201: "201", 204: "204"}[status]
	if code == "" {
		code = "default"
	}
	res, ok := op.Responses[code]
	if !ok {
		t.Errorf("%s %s: the answer %d is not described (%s)", method, path, status, body)
		return
	}
	if status == http.StatusNoContent {
		return
	}
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return
	}
	if err := f.schema(t, res.Content["application/json"].Schema).Validate(v); err != nil {
		t.Errorf("%s %s: %v\n%s", method, path, err, body)
	}
}

// The answers of the handlers are as the file says.
func TestOpenAPIAnswers(t *testing.T) {
	f := readAPI(t)
	r := newRig(t)
	id := string(r.begin("work"))
	r.stream("GET", "/api/v1/conversations/"+id+"/events", "")
	a := newScreen()
	a.until(t, r.view(p.ConversationID(id), a), func() bool { return a.state != nil && a.state.Phase == "waiting" })
	checked := map[string]bool{}
	for _, tt := range []struct{ method, path, body string }{
		{"GET", "/api/v1/hello?challenge=0123456789012345678901", ""},
		{"GET", "/api/v1/hello?challenge=x", ""},
		{"POST", "/api/v1/login", `{"code":"x"}`},
		{"GET", "/api/v1/openapi.json", ""},
		{"GET", "/api/v1/session", ""},
		{"GET", "/api/v1/conversations", ""},
		{"GET", "/api/v1/conversations?limit=x", ""},
		{"POST", "/api/v1/conversations", `{"cwd":"/w"}`},
		{"POST", "/api/v1/conversations", `{"model":"wrong"}`},
		{"POST", "/api/v1/conversations", `{"modle":"x"}`},
		{"GET", "/api/v1/conversations/{id}", ""},
		{"GET", "/api/v1/conversations/{id}/diff", ""},
		{"GET", "/api/v1/conversations/{id}/undo", ""},
		{"POST", "/api/v1/conversations/{id}/undo", `{"turn":1}`},
		{"GET", "/api/v1/conversations/{id}/items?before=100", ""},
		{"GET", "/api/v1/conversations/{id}/items/{item}", ""},
		{"POST", "/api/v1/conversations/{id}/ops", `{"kind":"rename","body":{"title":"x"}}`},
		{"POST", "/api/v1/conversations/{id}/ops", `{"kind":"nonsense","body":{}}`},
		{"POST", "/api/v1/conversations/{id}/ops", `{"kind":"undo","body":{}}`},
		{"POST", "/api/v1/conversations/{id}/ops", `{"kind":"user_turn","body":{"content":[{"type":"text","text":"x"}],"when_busy":"never"}}`},
		{"POST", "/api/v1/conversations/{id}/ops", `{"kind":"interrupt","body":{}}`},
		{"POST", "/api/v1/conversations/{id}/fork", `{"up_to":0}`},
		{"POST", "/api/v1/conversations/{id}/archive", `{}`},
		{"POST", "/api/v1/conversations/{id}/unarchive", `{}`},
		{"POST", "/api/v1/push", `{"endpoint":"https://push.example/1","expirationTime":null,"keys":{"auth":"a","p256dh":"b"}}`},
		{"POST", "/api/v1/push", `{"endpoint":"file:///etc/passwd","keys":{"auth":"a","p256dh":"b"}}`},
		{"DELETE", "/api/v1/session", ""},
	} {
		path, query, _ := strings.Cut(tt.path, "?")
		real := strings.NewReplacer("{id}", id, "{item}", "1.1.0").Replace(path)
		if query != "" {
			real += "?" + query
		}
		status, text, _ := r.do(tt.method, real, tt.body, nil)
		f.check(t, tt.method, path, status, text)
		if status >= 500 {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, status, text)
		}
		checked[tt.method+" "+path] = true
	}
	for _, to := range routes() {
		streams := strings.HasSuffix(to.path, "/events") || strings.HasSuffix(to.path, "/view")
		if strings.HasPrefix(to.path, "/api/") && !streams && !checked[to.method+" "+to.path] {
			t.Errorf("%s %s is not checked", to.method, to.path)
		}
	}
}

// Every op is described but the one that has an address of its own.
func TestOpenAPIHasTheOps(t *testing.T) {
	f := readAPI(t)
	for _, op := range []p.Op{
		p.UserTurn{},
		p.UserShell{},
		p.KillBackground{},
		p.Interrupt{},
		p.Approve{},
		p.Configure{},
		p.TryNow{},
		p.Compact{},
		p.Rename{},
		p.Revert{},
		p.EditInput{},
		p.DeleteInput{},
		p.ResolveReturned{},
	} {
		data, err := json.Marshal(p.OpJSON{Op: op})
		if err != nil {
			t.Fatal(err)
		}
		var w struct{ Kind string }
		if err := json.Unmarshal(data, &w); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(f.Components.Schemas["Op"]), `"const": "`+w.Kind+`"`) {
			t.Errorf("%s is not described", w.Kind)
		}
	}
}
