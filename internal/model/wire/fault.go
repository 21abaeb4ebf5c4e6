package wire

import (
	"net/http"
	"regexp"
	"sync"

	"github.com/fermata-agent/fermata/protocol"
)

// A call's id: what services make up, in whatever quotes, without the full stop
// of the sentence around it.
const callID = "[`'\"(\\\\ ]*([A-Za-z0-9_/:|-]+(?:\\.[A-Za-z0-9_/:|-]+)*)"

// faults are the ways in which services say that a call and its output do not
// go together. The id is the only group. They are compiled when one is first
// looked for: hardly any run of the program needs them.
var faults = sync.OnceValue(func() []faultForm {
	return compile([]faultText{
		{protocol.CallWithoutOutput, `(?i)No tool output found for (?:[a-z]+ )*?call ` + callID},
		{protocol.OutputWithoutCall, `(?i)No tool call found for (?:[a-z]+ )*?call output with call_id ` + callID},
		{protocol.OutputTwice, `(?i)Duplicate [a-z_]*output for call_id ` + callID},

		{protocol.CallWithoutOutput, `(?i)tool_call_ids did not have response messages: ` + callID},
		{protocol.OutputWithoutCall, `(?i)'tool_call_id' of ` + callID + `' not found in 'tool_calls'`},
		{protocol.OutputTwice, `(?i)Duplicate (?:value for )?.?tool_call_id.?(?: of|:)? ` + callID},
		{protocol.OutputWithoutCall, `(?i)tool result's tool id` + callID + `\)? not found`},

		{protocol.CallWithoutOutput, "(?i)tool_use.{0,2} ids were found without .{0,2}tool_result.{0,2} blocks immediately after:" + callID},
		{protocol.OutputWithoutCall, "(?i)unexpected .{0,2}tool_use_id.{0,2} found in .{0,2}tool_result.{0,2} blocks:" + callID},
		{protocol.OutputTwice, "(?i)multiple .{0,2}tool_result.{0,2} blocks with id:" + callID},
	})
})

type faultText struct {
	fault protocol.CallFaultKind
	text  string
}

type faultForm struct {
	fault protocol.CallFaultKind
	re    *regexp.Regexp
}

func compile(texts []faultText) []faultForm {
	forms := make([]faultForm, len(texts))
	for i, t := range texts {
		forms[i] = faultForm{t.fault, regexp.MustCompile(t.text)}
	}
	return forms
}

// fault finds the call that a service says is wrong with a history, or nil.
func (c Complaint) fault() *protocol.CallFault {
	if c.Status != 0 && (c.Status < 400 || c.Status > 499 || c.Status == http.StatusTooManyRequests) {
		return nil
	}
	// A proxy may have wrapped the service's own words, so look at everything.
	for _, text := range []string{c.Message, string(c.Body)} {
		if f := FindFault(text); f != nil {
			return f
		}
	}
	return nil
}

// FindFault finds the call that a text says is wrong with a history, or nil.
func FindFault(text string) *protocol.CallFault {
	for _, f := range faults() {
		if m := f.re.FindStringSubmatch(text); m != nil {
			return &protocol.CallFault{WireID: m[1], Fault: f.fault}
		}
	}
	return nil
}
