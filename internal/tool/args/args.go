// Package args reads the arguments that models write for a tool call.
//
// A [Schema] describes the parameters of one tool. It makes the JSON Schema that
// the model is sent, reads the arguments that come back, and words the error if
// they cannot be read. Reading is tolerant where the intent is unambiguous:
// JSON that is nearly valid is repaired, other names for a parameter and values of
// another type are accepted. Every such repair is listed in [Values.Repairs].
// What is ambiguous (arguments that end too early, two objects, a missing
// parameter) is an error that names the parameters and shows an example.
package args

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Type is the type of a parameter.
type Type string

// The types. A Command is an argument list that may also be given as one
// string, meant for a shell, and a Line is the reverse. Objects is a list of
// objects.
const (
	String  Type = "string"
	Number  Type = "number"
	Boolean Type = "boolean"
	Command Type = "command"
	Line    Type = "line"
	Objects Type = "objects"
)

// A Param is one parameter of a tool.
type Param struct {
	Name        string
	Type        Type
	Description string
	Required    bool
	Hidden      bool            // accepted, not offered
	Aliases     []string        // other names that models use for it
	Item        json.RawMessage // for Objects: the JSON Schema of an element
}

// A Schema is the parameters of one tool. Its zero value takes none. It must not
// be changed or copied after its first use, and may then be used from any goroutine.
type Schema struct {
	Tool    string
	Params  []Param
	Example string // the arguments of a typical call, as JSON
	Bare    string // the parameter that is meant by arguments that are no object

	// Rights, if set, is the answer to an unknown parameter that asks for more than is allowed, such as another sandbox.
	Rights string

	once sync.Once
	json json.RawMessage // set by once
}

// JSON returns the JSON Schema of the parameters that are offered.
func (s *Schema) JSON() json.RawMessage {
	s.once.Do(func() { s.json = s.encode() }) // sent with every request
	return s.json
}

func (s *Schema) encode() json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	required := []string{}
	for i, p := range s.offered() {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", marshal(p.Name), p.schema())
		if p.Required {
			required = append(required, p.Name)
		}
	}
	fmt.Fprintf(&b, `},"required":%s,"additionalProperties":false}`, marshal(required))
	return json.RawMessage(b.String())
}

// Strict reports whether the schema can be sent as a strict one, to which a
// service holds the model: every parameter must be required then.
func (s *Schema) Strict() bool {
	return !slices.ContainsFunc(s.offered(), func(p Param) bool { return !p.Required })
}

func (s *Schema) offered() []Param {
	return slices.DeleteFunc(slices.Clone(s.Params), func(p Param) bool { return p.Hidden })
}

func (p Param) schema() string {
	var rest string
	if p.Description != "" {
		rest = `,"description":` + marshal(p.Description)
	}
	switch p.Type {
	case Command:
		return `{"type":"array","items":{"type":"string"}` + rest + `}`
	case Objects:
		return `{"type":"array","items":` + string(p.Item) + rest + `}`
	case Line:
		return `{"type":"string"` + rest + `}`
	}
	return `{"type":"` + string(p.Type) + `"` + rest + `}`
}

// marshal is the JSON of a value that always has one. Angle brackets and
// ampersands stay readable.
func marshal(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // strings and lists of strings: cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}

// Describe adds the example to the description of the tool.
func (s *Schema) Describe(text string) string {
	if s.Example == "" {
		return text
	}
	return text + " Example: " + s.Example
}

// Error is the answer to a model whose arguments cannot be used. It describes the
// parameters of the tool and shows an example.
func (s *Schema) Error(problem string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "failed to parse function arguments: %s\n%s takes these parameters:", problem, s.Tool)
	for _, p := range s.offered() {
		need := ""
		if p.Required {
			need = ", required"
		}
		fmt.Fprintf(&b, "\n- %s (%s%s): %s", p.Name, p.Type.words(), need, p.Description)
	}
	if s.Example != "" {
		b.WriteString("\nExample: " + s.Example)
	}
	return b.String()
}

func (t Type) words() string {
	switch t {
	case Command:
		return "list of strings"
	case Line:
		return "string"
	case Objects:
		return "list of objects"
	}
	return string(t)
}

// Values are the arguments of one call.
type Values struct {
	Repairs []string // what had to be repaired, in words

	set  map[string]any // by the name of the parameter
	list []Param
}

// Has reports whether an argument was given.
func (v Values) Has(name string) bool { _, ok := v.set[name]; return ok }

// String returns a string, "" if it was not given.
func (v Values) String(name string) string { s, _ := v.set[name].(string); return s }

// Number returns a number, or otherwise if it was not given.
func (v Values) Number(name string, otherwise float64) float64 {
	if n, ok := v.set[name].(float64); ok {
		return n
	}
	return otherwise
}

// Bool returns a boolean, or otherwise if it was not given.
func (v Values) Bool(name string, otherwise bool) bool {
	if b, ok := v.set[name].(bool); ok {
		return b
	}
	return otherwise
}

// Command returns a command: argv, or a line for a shell if that was given.
func (v Values) Command(name string) (argv []string, line string) {
	switch c := v.set[name].(type) {
	case []string:
		return c, ""
	case string:
		return nil, c
	}
	return nil, ""
}

// Objects returns a list of objects.
func (v Values) Objects(name string) []map[string]json.RawMessage {
	list, _ := v.set[name].([]map[string]json.RawMessage)
	return list
}

func (v *Values) note(format string, a ...any) {
	v.Repairs = append(v.Repairs, fmt.Sprintf(format, a...))
}

// Parse reads arguments. The error is a text for the model.
func (s *Schema) Parse(text string) (Values, error) {
	v := Values{set: map[string]any{}, list: s.Params}
	object, err := s.object(&v, text)
	if err != nil {
		return v, fail(s.Error(err.Error()))
	}
	for _, name := range sortedKeys(object) {
		if err := s.take(&v, name, object[name]); err != nil {
			return v, fail(s.Error(err.Error()))
		}
	}
	for _, p := range s.Params {
		if p.Required && !v.Has(p.Name) {
			return v, fail(s.Error(fmt.Sprintf("the parameter %q is missing", p.Name)))
		}
	}
	return v, nil
}

// A fail is an error that is a text for the model.
type fail string

func (f fail) Error() string { return string(f) }

// sortedKeys returns the names so that parameters come before their aliases do:
// what is given by its own name counts.
func sortedKeys(m map[string]json.RawMessage) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// take reads one argument.
func (s *Schema) take(v *Values, name string, raw json.RawMessage) error {
	if string(raw) == "null" {
		return nil
	}
	p, ok := s.param(name)
	if !ok && s.Rights != "" && meansRights(name) && !asksNothing(raw) {
		return fmt.Errorf("the parameter %q is not known. %s", name, s.Rights)
	}
	if !ok {
		v.note("ignored the unknown parameter %q", name)
		return nil
	}
	if p.Name != name {
		if v.Has(p.Name) {
			v.note("ignored %q beside %q", name, p.Name)
			return nil
		}
		v.note("took %q for %q", name, p.Name)
	}
	value, err := p.read(v, raw)
	if err != nil {
		return err
	}
	v.set[p.Name] = value
	return nil
}

// meansRights reports whether the name of a parameter says that a call wants to be allowed more. Such a wish is answered: one that is
// ignored in silence looks granted.
func meansRights(name string) bool {
	plain := plainName(name)
	return slices.ContainsFunc([]string{"permission", "escalat", "sandbox", "elevat", "privilege", "sudo", "unconfined", "fullaccess", "networkaccess", "dangerous", "bypass"}, func(word string) bool {
		return strings.Contains(plain, word)
	})
}

// asksNothing reports whether a value says no, or nothing.
func asksNothing(raw json.RawMessage) bool {
	switch strings.ToLower(strings.Trim(string(raw), `" `)) {
	case "", "false", "none", "no", "default", "use_default", "[]", "{}":
		return true
	}
	return false
}

// param finds a parameter by its name, by the same name written differently, or
// by an alias.
func (s *Schema) param(name string) (Param, bool) {
	for _, p := range s.Params {
		if p.Name == name {
			return p, true
		}
	}
	plain := plainName(name)
	for _, p := range s.Params {
		if plainName(p.Name) == plain || slices.ContainsFunc(p.Aliases, func(a string) bool { return plainName(a) == plain }) {
			return p, true
		}
	}
	return Param{}, false
}

func plainName(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
}

// read gives an argument the type of its parameter.
func (p Param) read(v *Values, raw json.RawMessage) (any, error) {
	switch p.Type {
	case Number:
		return p.number(v, raw)
	case Boolean:
		return p.boolean(v, raw)
	case Command, Line:
		return p.command(v, raw)
	case Objects:
		return p.objects(v, raw)
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	if c := raw[0]; c == '{' || c == '[' {
		return nil, p.wrong()
	}
	v.note("took the value of %q for a string", p.Name)
	return string(raw), nil
}

func (p Param) wrong() error {
	return fmt.Errorf("the parameter %q must be a %s", p.Name, p.Type.words())
}

func (p Param) number(v *Values, raw json.RawMessage) (any, error) {
	var n float64
	if json.Unmarshal(raw, &n) == nil {
		return n, nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, p.wrong()
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || n != n || n-n != 0 { // neither NaN nor infinite
		return nil, p.wrong()
	}
	v.note("took the string in %q for a number", p.Name)
	return n, nil
}

func (p Param) boolean(v *Values, raw json.RawMessage) (any, error) {
	switch strings.ToLower(strings.Trim(string(raw), `" `)) {
	case "true", "1":
		if string(raw) != "true" {
			v.note("took the value of %q for true", p.Name)
		}
		return true, nil
	case "false", "0":
		if string(raw) != "false" {
			v.note("took the value of %q for false", p.Name)
		}
		return false, nil
	}
	return nil, p.wrong()
}

// command reads a list of strings, or a string. A list that was written as a string
// is a list.
func (p Param) command(v *Values, raw json.RawMessage) (any, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		var argv []string
		if strings.HasPrefix(strings.TrimSpace(text), `["`) && json.Unmarshal([]byte(text), &argv) == nil && len(argv) > 0 {
			v.note("took the string in %q for a list", p.Name)
			return argv, nil
		}
		if p.Type == Command {
			v.note("took the string in %q for a command line", p.Name)
		}
		return text, nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return nil, p.wrong()
	}
	argv := make([]string, len(parts))
	for i, part := range parts {
		if json.Unmarshal(part, &argv[i]) == nil {
			continue
		}
		if c := part[0]; c == '{' || c == '[' {
			return nil, p.wrong()
		}
		v.note("took an element of %q for a string", p.Name)
		argv[i] = string(part)
	}
	if p.Type == Line {
		v.note("took the list in %q for a command", p.Name)
	}
	return argv, nil
}

// objects reads a list of objects; one object is a list of one.
func (p Param) objects(v *Values, raw json.RawMessage) (any, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil && json.Valid([]byte(text)) {
		v.note("took the string in %q for a list", p.Name)
		raw = json.RawMessage(text)
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		return list, nil
	}
	var one map[string]json.RawMessage
	if json.Unmarshal(raw, &one) == nil {
		v.note("took the object in %q for a list of one", p.Name)
		return []map[string]json.RawMessage{one}, nil
	}
	return nil, p.wrong()
}
