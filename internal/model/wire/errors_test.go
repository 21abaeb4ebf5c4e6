package wire

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-agent/fermata/protocol"
)

func TestParseComplaint(t *testing.T) {
	tests := map[string]Complaint{
		`{"error":{"message":"m","type":"t","code":"c","param":"p"}}`:                         {Message: "m", Type: "t", Code: "c", Param: "p"},
		`{"error":{"message":"m","type":"t","code":null,"param":null}}`:                       {Message: "m", Type: "t"},
		`{"error":{"message":"m","code":402}}`:                                                {Status: 402, Message: "m", Code: "402"},
		`{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"r"}`: {Message: "m", Type: "overloaded_error"},
		`{"error":{"type":"usage_limit_reached","message":"m","resets_in_seconds":90}}`:       {Message: "m", Type: "usage_limit_reached", Resets: 90 * time.Second},
		`{"error":"text"}`:                      {Message: "text"},
		`{"detail":"text"}`:                     {Message: "text"},
		`{"message":"text"}`:                    {Message: "text"},
		`{"message":"text","type":"t"}`:         {Message: "text", Type: "t"},
		`[{"error":{"message":"m"}}]`:           {Message: "m"},
		`{"error":null}`:                        {},
		`{}`:                                    {},
		"null\n":                                {},
		`{"error":{"message":"", "code":null}}`: {},
		`[ {} ]`:                                {},
		`{"error":{},"code":7}`:                 {Message: `{"error":{},"code":7}`},
		`{"detail":[{"msg":"x"}]}`:              {Message: `{"detail":[{"msg":"x"}]}`},
		"plain text\n":                          {Message: "plain text"},
		``:                                      {},
		`[]`:                                    {},
	}
	for body, want := range tests {
		want.Body = []byte(body)
		if d := cmp.Diff(want, ParseComplaint([]byte(body))); d != "" {
			t.Errorf("%s (-want +got):\n%s", body, d)
		}
	}
}

// A limit is reported with its end, whatever the body says.
func TestLimitsAreExplained(t *testing.T) {
	const status = "the model service answered 429 Too Many Requests"
	for _, tt := range []struct {
		status        int
		body, after   string
		message, hint string
	}{
		{429, ``, "7200", status, "the limit is lifted in 2h0m0s"},
		{429, `{}`, "7200", status, "the limit is lifted in 2h0m0s"},
		{429, `{"error":{}}`, "90", status, "the limit is lifted in 1m30s"},
		{429, `<h1>go away</h1>`, "7200", status + ": <h1>go away</h1>", "the limit is lifted in 2h0m0s"},
		{429, `{"error":{"message":"slow down","type":"tokens"}}`, "7200", "slow down", "the limit is lifted in 2h0m0s"},
		{429, `{}`, "", status, ""},
		{402, `{}`, "7200", "the model service answered 402 Payment Required", "the limit is lifted in 2h0m0s"},
		{503, `{}`, "7200", "the model service answered 503 Service Unavailable", "the service can be tried again in 2h0m0s"},
		{400, `{}`, "7200", "the model service answered 400 Bad Request", ""},
	} {
		header := http.Header{}
		if tt.after != "" {
			header.Set("Retry-After", tt.after)
		}
		e := new(Stream).refusal(tt.status, header, []byte(tt.body))
		if e.Message != tt.message || e.Hint != tt.hint {
			t.Errorf("%d %s: %q, hint %q, want %q, %q", tt.status, tt.body, e.Message, e.Hint, tt.message, tt.hint)
		}
	}
}

func TestALongBodyIsCutBetweenCharacters(t *testing.T) {
	c := ParseComplaint([]byte("x" + strings.Repeat("é", 5000)))
	if len(c.Message) > maxText+3 || !strings.HasSuffix(c.Message, "é…") {
		t.Errorf("%d bytes, ends %q", len(c.Message), c.Message[len(c.Message)-8:])
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tt := range map[string]struct {
		header, value string
		want          time.Duration
		ok            bool
	}{
		"seconds":      {"Retry-After", "3", 3 * time.Second, true},
		"fraction":     {"Retry-After", " 1.5 ", 1500 * time.Millisecond, true},
		"zero":         {"Retry-After", "0", 0, true},
		"date":         {"Retry-After", "Fri, 02 Jan 2026 03:04:15 GMT", 10 * time.Second, true},
		"past date":    {"Retry-After", "Fri, 02 Jan 2026 03:04:00 GMT", 0, true},
		"milliseconds": {"Retry-After-Ms", "20", 20 * time.Millisecond, true},
		"nonsense":     {"Retry-After", "soon", 0, false},
		"negative":     {"Retry-After", "-5", 0, false},
		"huge":         {"Retry-After", "1e300", 0, true},
		"none":         {"X", "", 0, false},
	} {
		got, ok := retryAfter(http.Header{tt.header: {tt.value}}, now)
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s: %v, %v, want %v, %v", name, got, ok, tt.want, tt.ok)
		}
	}
}

func TestWaitInAMessage(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"Please try again in 1.5s. Thanks":      1500 * time.Millisecond,
		"try again in 28ms":                     28 * time.Millisecond,
		"Please retry after 20 seconds":         20 * time.Second,
		"Please retry after 20 sec":             20 * time.Second,
		"TRY AGAIN IN 2 m":                      2 * time.Minute,
		"try again in 3 min":                    3 * time.Minute,
		"try again in a while":                  0,
		"try again in 99999999999999999999999s": 0,
	} {
		if got := waitIn(text); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestRules(t *testing.T) {
	tests := map[string]struct {
		c     Complaint
		kind  protocol.ErrorKind
		retry bool
	}{
		"nothing at all":              {Complaint{}, protocol.ErrorModel, true},
		"unknown code in a stream":    {Complaint{Code: "new_thing", Message: "x"}, protocol.ErrorModel, true},
		"invalid prompt in a stream":  {Complaint{Code: "invalid_prompt"}, protocol.ErrorRequest, false},
		"bad key in a stream":         {Complaint{Type: "authentication_error"}, protocol.ErrorAuth, false},
		"rate limit about context":    {Complaint{Status: 429, Message: "too many tokens for this context window"}, protocol.ErrorRateLimit, true},
		"too many requests in stream": {Complaint{Type: "too_many_requests"}, protocol.ErrorRateLimit, true},
		"a 400 about a model":         {Complaint{Status: 400, Message: "gpt-x is not a valid model ID"}, protocol.ErrorUnknownModel, false},
		"a 400 about something else":  {Complaint{Status: 400, Message: "the model refuses"}, protocol.ErrorRequest, false},
		"a 404 about a model":         {Complaint{Status: 404, Message: "model 'x' not found"}, protocol.ErrorUnknownModel, false},
		"405":                         {Complaint{Status: 405}, protocol.ErrorRequest, false},
		"400 with a history fault":    {Complaint{Status: 400, Message: "No tool output found for function call c."}, protocol.ErrorHistory, false},
		"500 with such words":         {Complaint{Status: 500, Message: "No tool output found for function call c."}, protocol.ErrorModel, true},
		"429 with such words":         {Complaint{Status: 429, Message: "No tool output found for function call c."}, protocol.ErrorRateLimit, true},
		"wrapped by a proxy":          {Complaint{Status: 400, Message: "Provider returned error", Body: []byte(`{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"No tool output found for function call call_1.\"}}"}}}`)}, protocol.ErrorHistory, false},
	}
	for name, tt := range tests {
		e := tt.c.Error()
		if e.Kind != tt.kind || e.Retry != tt.retry || e.Message == "" {
			t.Errorf("%s: %s, retry %v, %q; want %s, %v", name, e.Kind, e.Retry, e.Message, tt.kind, tt.retry)
		}
		if (e.Kind == protocol.ErrorHistory) != (e.Call != nil) {
			t.Errorf("%s: call %+v", name, e.Call)
		}
	}
	e := Complaint{Type: "usage_limit_reached", Resets: time.Hour, After: time.Second}.Error()
	if !strings.Contains(e.Hint, "1h0m0s") || e.After != time.Hour {
		t.Errorf("usage limit: hint %q, after %v", e.Hint, e.After)
	}
	if e := (Complaint{Status: 503}).Error(); e.Message != "the model service answered 503 Service Unavailable" {
		t.Errorf("message %q", e.Message)
	}
}

func TestFindFault(t *testing.T) {
	const (
		missing = protocol.CallWithoutOutput
		orphan  = protocol.OutputWithoutCall
		twice   = protocol.OutputTwice
	)
	tests := map[string]protocol.CallFault{
		"No tool output found for function call call_Az09_-/x.":                  {WireID: "call_Az09_-/x", Fault: missing},
		"No tool output found for function call call_1":                          {WireID: "call_1", Fault: missing},
		"No tool output found for function call: nothing":                        {},
		"400: No tool output found for custom tool call call_1. Go away.":        {WireID: "call_1", Fault: missing},
		"No tool output found for tool call call_1.":                             {WireID: "call_1", Fault: missing},
		"No tool output found for local shell call lsh_1.":                       {WireID: "lsh_1", Fault: missing},
		"no tool output found for function call functions.shell:0.":              {WireID: "functions.shell:0", Fault: missing},
		"No tool output found for function call 'call_1'.":                       {WireID: "call_1", Fault: missing},
		`{\"message\": \"No tool output found for function call call_1.\",`:      {WireID: "call_1", Fault: missing},
		"No tool call found for function call output with call_id call_1.":       {WireID: "call_1", Fault: orphan},
		"No tool call found for custom tool call output with call_id call_1.":    {WireID: "call_1", Fault: orphan},
		"Duplicate function_call_output for call_id 'terminal:0'. Each function": {WireID: "terminal:0", Fault: twice},
		"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1": {WireID: "call_1", Fault: missing},
		"… The following tool_call_ids did not have response messages: call_1, call_2":                                                                                                   {WireID: "call_1", Fault: missing},
		"Invalid parameter: 'tool_call_id' of 'call_1' not found in 'tool_calls' of previous message.":                                                                                   {WireID: "call_1", Fault: orphan},
		"Invalid parameter: Duplicate value for 'tool_call_id' of 'call_1' in message with role 'tool'.":                                                                                 {WireID: "call_1", Fault: twice},
		"invalid params, tool result's tool id(call_function_x_1) not found (2013)":                                                                                                      {WireID: "call_function_x_1", Fault: orphan},
		"messages.22: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01, toolu_02. Each":                                                                {WireID: "toolu_01", Fault: missing},
		"messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_01. Each `tool_result` block must":                                                          {WireID: "toolu_01", Fault: orphan},
		"messages.1.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: toolu_01":                                                           {WireID: "toolu_01", Fault: twice},
		"The model is overloaded": {},
		"":                        {},
	}
	for text, want := range tests {
		var got protocol.CallFault
		if f := FindFault(text); f != nil {
			got = *f
		}
		if got != want {
			t.Errorf("%s\n got %+v\nwant %+v", text, got, want)
		}
	}
}

// FuzzComplaint checks the parser of refusals: any body gives an error with a
// message, and a fault always names a call by characters that ids are made of.
func FuzzComplaint(f *testing.F) {
	f.Add(400, []byte(`{"error":{"message":"No tool output found for function call call_X.","type":"invalid_request_error","param":"input","code":null}}`))
	f.Add(400, []byte("No tool call found for function call output with call_id call_/a-B."))
	f.Add(400, []byte("messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1."))
	f.Add(400, []byte("The following tool_call_ids did not have response messages: a, b"))
	f.Add(429, []byte(`[{"error":{"code":5,"message":"try again in 5s"}}]`))
	f.Add(500, []byte(`<html>`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		c := ParseComplaint(body)
		c.Status = status
		e := c.Error()
		if e.Kind == "" || e.Message == "" || e.After < 0 {
			t.Fatalf("%+v", e)
		}
		if (e.Call != nil) != (e.Kind == protocol.ErrorHistory) {
			t.Fatalf("%+v", e)
		}
		if e.Call != nil && (e.Call.WireID == "" || strings.Trim(e.Call.WireID, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/:|-.") != "" || e.Call.Fault == "") {
			t.Fatalf("fault %+v", e.Call)
		}
		if _, err := json.Marshal(e); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzFault checks that an id of the usual characters is found in every phrasing.
func FuzzFault(f *testing.F) {
	f.Add("call_X")
	f.Add("toolu_01/-_aZ")
	f.Fuzz(func(t *testing.T, id string) {
		if id == "" || strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/-") != "" {
			t.Skip()
		}
		for _, form := range []string{
			"No tool output found for function call ?.", "No tool output found for custom tool call ?",
			"No tool call found for function call output with call_id ?.", "Duplicate function_call_output for call_id '?'.",
			"tool_call_ids did not have response messages: ?", "blocks: `tool_use` ids were found without `tool_result` blocks immediately after: ?. Each",
			"unexpected `tool_use_id` found in `tool_result` blocks: ?. Each", "Found multiple `tool_result` blocks with id: ?",
		} {
			got := FindFault(strings.ReplaceAll(form, "?", id))
			if got == nil || got.WireID != id {
				t.Errorf("%s with %q: %+v", form, id, got)
			}
		}
	})
}

func TestSecretsAreTakenOut(t *testing.T) {
	c, err := NewCaller(Options{URL: "https://u:pw@host.test/x?k=in-the-url", Secrets: []string{"plainkey", ""}, Headers: map[string]string{"X-Key": "headerkey"}, Query: map[string]string{"key": "querykey"}})
	if err != nil {
		t.Fatal(err)
	}
	got := c.redact("plainkey headerkey querykey sk-ant-abcdefgh123 Bearer abcdefghijk Incorrect API key provided: sk-proj*****xyz. A task-force.")
	if want := "*** *** *** sk-*** Bearer *** Incorrect API key provided: sk-*** A task-force."; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestUnreachable(t *testing.T) {
	c := &Caller{host: "host.test"}
	tests := map[string]struct {
		err   error
		retry bool
	}{
		"refused":     {&url.Error{Op: "Post", URL: "https://host.test/?key=secretsecret", Err: errors.New("connection refused")}, true},
		"certificate": {&url.Error{Op: "Post", Err: x509.UnknownAuthorityError{}}, false},
	}
	for name, tt := range tests {
		e := c.unreachable(tt.err)
		if e.Kind != protocol.ErrorConnection || e.Retry != tt.retry || strings.Contains(e.Message, "secretsecret") || !strings.Contains(e.Message, "host.test") {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestBadAddresses(t *testing.T) {
	for _, u := range []string{"", "nonsense", "/v1", "http://", "http://[::1", "://x"} {
		if _, err := NewCaller(Options{URL: u}); err == nil {
			t.Errorf("%q: no error", u)
		}
	}
	_, err := NewCaller(Options{URL: "http://user:secret@?key=other"})
	if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "other") {
		t.Errorf("error is %v", err)
	}
}
