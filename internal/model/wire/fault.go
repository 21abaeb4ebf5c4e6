package wire

import (
	"net/http"
	"regexp"

	"github.com/fermata-agent/fermata/protocol"
)

// A call's id: what services make up, in whatever quotes, without the full stop
// of the sentence around it.
const callID = "[`'\"(\\\\ ]*([A-Za-z0-9_/:|-]+(?:\\.[A-Za-z0-9_/:|-]+)*)"

// faults are the ways in which services say that a call and its output do not
// go together. The id is the only group.
var faults = []struct {
	fault protocol.CallFaultKind
	re    *regexp.Regexp
}{
	{protocol.CallWithoutOutput, regexp.MustCompile(`(?i)No tool output found for (?:[a-z]+ )*?call ` + callID)},
	{protocol.OutputWithoutCall, regexp.MustCompile(`(?i)No tool call found for (?:[a-z]+ )*?call output with call_id ` + callID)},
	{protocol.OutputTwice, regexp.MustCompile(`(?i)Duplicate [a-z_]*output for call_id ` + callID)},

	{protocol.CallWithoutOutput, regexp.MustCompile(`(?i)tool_call_ids did not have response messages: ` + callID)},
	{protocol.OutputWithoutCall, regexp.MustCompile(`(?i)'tool_call_id' of ` + callID + `' not found in 'tool_calls'`)},
	{protocol.OutputTwice, regexp.MustCompile(`(?i)Duplicate (?:value for )?.?tool_call_id.?(?: of|:)? ` + callID)},
	{protocol.OutputWithoutCall, regexp.MustCompile(`(?i)tool result's tool id` + callID + `\)? not found`)},

	{protocol.CallWithoutOutput, regexp.MustCompile("(?i)tool_use.{0,2} ids were found without .{0,2}tool_result.{0,2} blocks immediately after:" + callID)},
	{protocol.OutputWithoutCall, regexp.MustCompile("(?i)unexpected .{0,2}tool_use_id.{0,2} found in .{0,2}tool_result.{0,2} blocks:" + callID)},
	{protocol.OutputTwice, regexp.MustCompile("(?i)multiple .{0,2}tool_result.{0,2} blocks with id:" + callID)},
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
	for _, f := range faults {
		if m := f.re.FindStringSubmatch(text); m != nil {
			return &protocol.CallFault{WireID: m[1], Fault: f.fault}
		}
	}
	return nil
}
