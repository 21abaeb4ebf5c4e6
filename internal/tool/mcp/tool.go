package mcp

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/model"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/internal/tool/mcp/message"
	"github.com/fermata-agent/fermata/protocol"
)

// A Tool is a tool of an MCP server.
type Tool struct {
	server   *server
	of       protocol.MCPTool
	name     string // for the model
	spec     model.ToolSpec
	readOnly bool // as the server says

	approvals Approvals // nil: as the definition says
}

// maxName is the longest name of a tool that services take.
const maxName = 64

// toolName is how the model is to call a tool of a server. Characters that services
// refuse are replaced, and what is too long ends in a checksum.
func toolName(server, name string) string {
	full := server + "__" + name
	if len(full) > maxName {
		sum := sha1.Sum([]byte(full))
		hash := hex.EncodeToString(sum[:])
		full = full[:maxName-len(hash)] + hash
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, full)
}

func newTool(s *server, t listed) *Tool {
	name := toolName(s.name, t.Name)
	return &Tool{
		server: s, of: protocol.MCPTool{Server: s.name, Name: t.Name}, name: name,
		readOnly: t.ReadOnly && !t.Destructive && s.def.Project == "", // what others wrote is not believed
		spec:     model.ToolSpec{Name: name, Kind: protocol.CallFunction, Description: t.Description, Parameters: t.Parameters},
	}
}

// with returns the tool with what the configuration says of it now.
func (t *Tool) with(now Approvals) *Tool {
	of := *t
	of.approvals = now
	return &of
}

// parameters passes the schema of a tool on. Services want an object with properties.
func parameters(schema any) json.RawMessage {
	raw, err := json.Marshal(schema)
	m := map[string]json.RawMessage{}
	if err != nil || json.Unmarshal(raw, &m) != nil || m == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	_, typed := m["type"]
	_, has := m["properties"]
	if typed && has {
		return raw
	}
	m["type"] = json.RawMessage(`"object"`)
	if !has {
		m["properties"] = json.RawMessage(`{}`)
	}
	if out, err := json.Marshal(m); err == nil {
		raw = out
	}
	return raw
}

// Spec describes the tool to the model, as its server does.
func (t *Tool) Spec() model.ToolSpec { return t.spec }

// ReadOnly reports whether the server says that the tool changes nothing.
func (t *Tool) ReadOnly() bool { return t.readOnly }

// Run calls the tool, if it may be called. When ctx ends the server is notified and its
// answer is dropped.
func (t *Tool) Run(ctx context.Context, call tool.Call) tool.Result {
	arguments, err := object(call.Arguments)
	if err != nil {
		return refusal(err.Error())
	}
	if instead := t.approve(call, arguments); instead != nil {
		return *instead
	}
	ss, err := t.server.session(ctx)
	if err != nil {
		return t.unanswered(ctx, fmt.Errorf("the MCP server %s is not available: %w", t.server.name, err))
	}
	if err := call.Host.Record(ctx, &protocol.ServerCallStarted{Call: call.ID, Tool: t.of, Arguments: arguments}); err != nil {
		return t.unanswered(ctx, err)
	}
	began := time.Now()
	limit := t.server.def.ToolTimeout
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := ss.begin(call, limit, func() { cancel(fmt.Errorf("the MCP server %s did not answer within %v", t.server.name, limit)) })
	params := &sdk.CallToolParams{Name: t.of.Name, Arguments: arguments}
	params.SetProgressToken(r.token)
	answer, err := ss.call(limited, params)
	ss.end(r)
	var res tool.Result
	if err != nil {
		res = t.unanswered(ctx, err)
	} else {
		res = t.convertResult(call, answer)
	}
	if text := r.unasked.Load(); text != nil {
		res.Output.Refused, res.Output.RefusedFor = *text, protocol.RefusedQuestion
	}
	res.Output.Elapsed = time.Since(began)
	return res
}

// object checks that arguments are a JSON object, and makes them compact.
func object(text string) (json.RawMessage, error) {
	if strings.TrimSpace(text) == "" {
		return json.RawMessage(`{}`), nil
	}
	var m map[string]any
	var b bytes.Buffer
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil, fmt.Errorf("failed to parse function arguments: %w", err)
	}
	if m == nil {
		return json.RawMessage(`{}`), nil
	}
	if err := json.Compact(&b, []byte(text)); err != nil {
		return nil, fmt.Errorf("failed to parse function arguments: %w", err)
	}
	return b.Bytes(), nil
}

func refusal(text string) tool.Result {
	return tool.Result{Output: protocol.ToolOutput{Output: text, Failed: true}}
}

// approval is what the configuration says about the tool.
func (t *Tool) approval() config.MCPApproval {
	if t.approvals != nil {
		return t.approvals(t.server.def.Project, t.of)
	}
	if a := t.server.def.ToolApproval[t.of.Name]; a != "" {
		return a
	}
	return t.server.def.Approval
}

// approve returns what happens in place of the call, nil if it may be made. A server
// runs outside of any sandbox, so what is not known to be read-only asks, unless commands
// may do everything as well.
func (t *Tool) approve(call tool.Call, arguments json.RawMessage) *tool.Result {
	a := t.approval()
	switch {
	case a == config.MCPDeny:
		r := refusal(fmt.Sprintf("the configuration does not allow calls of %s of the MCP server %s", t.of.Name, t.of.Server))
		return &r
	case call.Settings.Plan && !t.readOnly:
		r := refusal(fmt.Sprintf("%s of the MCP server %s was not called: it may change something, and in plan mode nothing is changed until the user accepts the plan", t.of.Name, t.of.Server))
		return &r
	case a == config.MCPAllow, !t.server.opt.NoEscalation && t.granted(call):
		return nil
	case a == "" && (t.readOnly || call.Settings.Sandbox.Mode == protocol.SandboxFullAccess):
		return nil
	case t.server.opt.NoEscalation:
		r := refusal(fmt.Sprintf("%s of the MCP server %s may not be called here: it runs outside the sandbox, and a limit of this machine or server forbids to approve that", t.of.Name, t.of.Server))
		return &r
	case call.Settings.Approval == protocol.ApprovalNever:
		r := refusal(fmt.Sprintf("calling %s of the MCP server %s needs an approval, and there is no interactive client; "+
			"the user can allow it: fermata permissions allow --tool %s.%s", t.of.Name, t.of.Server, t.of.Server, t.of.Name))
		r.Output.Refused, r.Output.RefusedFor = r.Output.Output, protocol.RefusedTool
		return &r
	}
	return &tool.Result{Ask: &protocol.ApprovalRequested{
		Kind: protocol.ApproveTool, RefusedFor: protocol.RefusedTool, MCP: &t.of, Cwd: call.Settings.Cwd, Detail: arguments,
		Command: []string{t.of.Server + "." + t.of.Name, string(arguments)},
		Reason:  fmt.Sprintf("The model wants to call %s of the MCP server %s, which runs outside the sandbox", t.of.Name, t.of.Server),
	}}
}

// granted reports whether a client has approved the call, or the tool for the session.
func (t *Tool) granted(call tool.Call) bool {
	return call.Grant == protocol.Approved || call.Grant == protocol.ApprovedForSession || call.Grants.HasTool(t.of)
}

// recordedBytes is how much of an answer is recorded: what is kept of it, with notes of what was left out.
const recordedBytes = message.KeptBytes + 64<<10

// convertResult makes the output of a call from the server's answer.
func (t *Tool) convertResult(call tool.Call, answer *sdk.CallToolResult) tool.Result {
	raw, err := json.Marshal(answer)
	if err != nil {
		return refusal(fmt.Sprintf("the answer of the MCP server %s cannot be read: %v", t.of.Server, err))
	}
	text, images := tool.MCPContent(raw)
	res := protocol.MCPResult{Tool: t.of, Result: raw, Omitted: omitted(answer.Meta)}
	if len(raw) > recordedBytes {
		short, left := shortened(text)
		text, res.Omitted = short, res.Omitted+left
		res.Result, _ = json.Marshal(sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, IsError: answer.IsError}) // text: cannot fail
	}
	return tool.Result{Output: protocol.ToolOutput{
		Output: tool.Shorten(call, text, res.Omitted) + omittedNote(answer.Meta), Content: images, Failed: answer.IsError, MCP: &res,
	}}
}

// omitted is how many bytes of a result were left out while it was read.
func omitted(meta sdk.Meta) int64 {
	n, _ := meta[message.OmittedKey].(float64) // 0 if nothing was
	return int64(n)
}

// omittedNote says to the model, and to people, that something was left out of a result while it was read.
func omittedNote(meta sdk.Meta) string {
	if n := omitted(meta); n > 0 {
		return fmt.Sprintf("\n[The result is too long: %d bytes of it were left out and are not recorded.]", n)
	}
	return ""
}

// shortened keeps the beginning and the end of a text.
func shortened(text string) (string, int64) {
	if len(text) <= message.KeptBytes/2 {
		return text, 0
	}
	return strings.ToValidUTF8(text[:message.KeptBytes/4]+"\n…\n"+text[len(text)-message.KeptBytes/4:], ""), int64(len(text) - message.KeptBytes/2)
}

// unanswered is the output of a call that has no answer.
func (t *Tool) unanswered(ctx context.Context, err error) tool.Result {
	out := protocol.ToolOutput{Output: err.Error(), Failed: true, MCP: &protocol.MCPResult{Tool: t.of, Error: err.Error()}}
	if ctx.Err() != nil {
		out = protocol.ToolOutput{Aborted: true, MCP: &protocol.MCPResult{Tool: t.of, Error: "interrupted"}}
	}
	return tool.Result{Output: out}
}

// cancelBound is how long a call that was cancelled is waited for: the server may not
// read what it is sent.
const cancelBound = 300 * time.Millisecond

// call calls a tool.
func (ss *session) call(ctx context.Context, params *sdk.CallToolParams) (*sdk.CallToolResult, error) {
	res, err := request(ctx, ss, func(ctx context.Context) (*sdk.CallToolResult, error) { return ss.sdk.CallTool(ctx, params) })
	var login *LoginError
	switch {
	case err == nil:
		return res, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &login):
		return nil, fmt.Errorf("the MCP server %s cannot be called: %w", ss.server.name, login)
	case ss.lost(err):
		return nil, fmt.Errorf("the MCP server %s ended during the call: %w", ss.server.name, ss.why())
	}
	return nil, fmt.Errorf("the MCP server %s refused the call: %w", ss.server.name, err)
}

// lost reports whether a request failed because the server has ended.
func (ss *session) lost(err error) bool {
	return errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF) || ss.over()
}

// request waits for the answer to a request. When ctx ends the server is notified, and ended if it does
// not take that.
func request[T any](ctx context.Context, ss *session, send func(context.Context) (T, error)) (T, error) {
	type ended struct {
		res T
		err error
	}
	done := make(chan ended, 1)
	go func() { // ended by ctx, or by the end of the session; waited for below
		res, err := send(ctx)
		done <- ended{res, err}
	}()
	select {
	case e := <-done:
		return e.res, e.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(cancelBound)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		ss.stop(errClosed)
		<-done
	}
	var none T
	return none, context.Cause(ctx) // a late answer is dropped
}

// stop ends a session that does not react. It does not wait.
func (ss *session) stop(cause error) {
	if ss.process != nil {
		ss.process.giveUp(cause)
	}
	ss.cancel(cause)
}
