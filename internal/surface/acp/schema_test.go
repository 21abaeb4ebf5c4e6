package acp

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// published is the schema of the stable version 1 of the protocol, as @agentclientprotocol/sdk 2.4.0 has it.
var published = sync.OnceValues(func() (*schema, error) {
	text, err := os.ReadFile("testdata/schema.json")
	if err != nil {
		return nil, err
	}
	var defs struct {
		Defs map[string]*jsonschema.Schema `json:"$defs"`
	}
	if err := json.Unmarshal(text, &defs); err != nil {
		return nil, err
	}
	root := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{}, Defs: defs.Defs}
	for name := range defs.Defs {
		root.Properties[name] = &jsonschema.Schema{Ref: "#/$defs/" + name}
	}
	s := &schema{names: map[string]string{}}
	if s.all, err = root.Resolve(nil); err != nil {
		return nil, err
	}
	var raw struct {
		Defs map[string]struct {
			Method string `json:"x-method"`
			Side   string `json:"x-side"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	for name, def := range raw.Defs {
		if def.Method != "" {
			kind := "params"
			if strings.HasSuffix(name, "Response") {
				kind = "result"
			}
			s.names[def.Side+" "+def.Method+" "+kind] = name
		}
	}
	return s, nil
})

type schema struct {
	names map[string]string    // of definitions, by who answers, method, and params or result
	all   *jsonschema.Resolved // of an object whose members are checked by the definitions of their names
}

// valid checks a value by a definition.
func (s *schema) valid(name string, value json.RawMessage) error {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	return s.all.Validate(map[string]any{name: v})
}

// A judge checks every message of a connection in both directions.
type judge struct {
	t testing.TB

	mu   sync.Mutex
	asks map[string]string // the methods of requests, by who asked and the id; guarded by mu
	bad  bool              // what the client sends is wrong on purpose; guarded by mu
	seen map[string]int    // how many messages of each definition were right; guarded by mu
}

// The sides of a connection.
const (
	fromClient = "client"
	fromAgent  = "agent"
)

func otherSide(side string) string {
	if side == fromClient {
		return fromAgent
	}
	return fromClient
}

// look checks a line.
func (j *judge) look(from string, line []byte) {
	s, err := published()
	if err != nil {
		j.t.Error(err)
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var m struct {
		Version string `json:"jsonrpc"`
		ID      json.RawMessage
		Method  string
		Params  json.RawMessage
		Result  json.RawMessage
		Error   json.RawMessage
	}
	if err := json.Unmarshal(line, &m); err != nil {
		j.wrong(from, line, err)
		return
	}
	if m.Version != "2.0" {
		j.wrong(from, line, fmt.Errorf("no version"))
	}
	name, value, method := "", m.Params, m.Method
	key := " " + string(m.ID)
	switch {
	case m.Method == "$/cancel_request":
		name = "CancelRequestNotification"
	case m.Method != "":
		name = s.names[otherSide(from)+" "+m.Method+" params"]
		if len(m.ID) > 0 {
			j.asks[from+key] = m.Method
		}
	case len(m.Error) > 0:
		name, value = "Error", m.Error
	default:
		method = j.asks[otherSide(from)+key]
		name, value = s.names[from+" "+method+" result"], m.Result
		delete(j.asks, otherSide(from)+key)
	}
	if name == "" {
		if from == fromAgent && method != "session/set_model" {
			j.wrong(from, line, fmt.Errorf("the schema does not have it"))
		}
		return
	}
	if err := s.valid(name, value); err != nil {
		j.wrong(from, line, err)
		return
	}
	j.seen[name]++
}

// wrong fails the test, unless the client is wrong on purpose.
func (j *judge) wrong(from string, line []byte, err error) {
	if from == fromAgent || !j.bad {
		j.t.Errorf("the %s sends %.400s: %v", from, line, err)
	}
}
