package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/protocol"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A running call is one that the server works on. Its time limit starts again when the
// server reports progress, and does not run while the person is asked.
type running struct {
	call  tool.Call
	token string // of its progress
	limit time.Duration
	timer *time.Timer
	asked atomic.Int32 // questions that are open
	over  atomic.Bool
	shown atomic.Int64 // when progress was shown last, in milliseconds

	unasked atomic.Pointer[string] // what it asked last that no client could answer, for people; nil if nothing
}

// begin starts the time limit of a call and makes it known to the session. The caller
// calls end.
func (ss *session) begin(call tool.Call, limit time.Duration, late func()) *running {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.lastCall++
	r := &running{call: call, token: strconv.FormatInt(ss.lastCall, 10), limit: limit, timer: time.AfterFunc(limit, late)}
	ss.calls[r.token] = r
	return r
}

func (ss *session) end(r *running) {
	r.over.Store(true)
	r.timer.Stop()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.calls, r.token)
}

// restart starts the time limit again, unless the call is over or the person is asked.
func (r *running) restart() {
	if !r.over.Load() && r.asked.Load() == 0 {
		r.timer.Reset(r.limit)
	}
	if r.over.Load() { // it ended meanwhile
		r.timer.Stop()
	}
}

// progress shows what the server says about a call.
func (ss *session) progress(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	ss.mu.Lock()
	r := ss.calls[fmt.Sprint(req.Params.ProgressToken)]
	ss.mu.Unlock()
	if r == nil {
		return // of a call that is over
	}
	r.restart()
	now, last := time.Now().UnixMilli(), r.shown.Load()
	if done := req.Params.Total > 0 && req.Params.Progress >= req.Params.Total; now-last < progressPause && !done {
		return // it could not be read
	}
	r.shown.Store(now)
	r.call.Host.Write(protocol.DeltaProgress, progressLine(req.Params)+"\n")
}

// progressPause is how many milliseconds pass between two lines of progress.
const progressPause = 100

// maxProgress is how long a line of progress may be.
const maxProgress = 500

func progressLine(p *sdk.ProgressNotificationParams) string {
	var parts []string
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	switch {
	case p.Total > 0:
		parts = append(parts, number(p.Progress)+"/"+number(p.Total))
	case p.Message == "":
		parts = append(parts, number(p.Progress))
	}
	if text := oneLine(p.Message); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) > maxProgress {
		text = strings.ToValidUTF8(text[:maxProgress], "") + "…"
	}
	return text
}

// elicit asks the person what the server wants to know. The protocol does not say for
// which call it asks, so there has to be just one.
func (ss *session) elicit(ctx context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	r, err := ss.onlyCall()
	if err != nil {
		return nil, err
	}
	host, ok := r.call.Host.(tool.Elicitor)
	if !ok || r.call.Settings.Approval == protocol.ApprovalNever {
		text := "declined, since there is no interactive client: " + oneLine(req.Params.Message)
		r.unasked.Store(&text)
		r.call.Host.Write(protocol.DeltaProgress, text+"\n")
		return &sdk.ElicitResult{Action: string(protocol.ElicitationDecline)}, nil
	}
	schema, err := json.Marshal(req.Params.RequestedSchema)
	if err != nil || req.Params.RequestedSchema == nil {
		schema = nil
	}
	r.asked.Add(1)
	r.timer.Stop()
	resolved, err := host.Elicit(ctx, protocol.ElicitationRequested{
		Server: ss.server.name, Message: req.Params.Message, Schema: schema, URL: req.Params.URL,
	})
	r.asked.Add(-1)
	r.restart()
	if err != nil {
		return &sdk.ElicitResult{Action: string(protocol.ElicitationCancel)}, nil
	}
	res := &sdk.ElicitResult{Action: string(resolved.Action)}
	if resolved.Action == protocol.ElicitationAccept && req.Params.URL == "" {
		res.Content = map[string]any{}
		if len(resolved.Content) > 0 {
			err = json.Unmarshal(resolved.Content, &res.Content)
		}
	}
	return res, err
}

func (ss *session) onlyCall() (*running, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if len(ss.calls) > 1 {
		return nil, errors.New("several calls are running: fermata cannot know which one asks")
	}
	for _, r := range ss.calls {
		return r, nil
	}
	return nil, errors.New("fermata can ask its user only during a call")
}

// errNoSampling answers a server that wants to use the model.
var errNoSampling = errors.New("fermata does not let servers use its model (sampling is not supported)")

// refuseSampling answers requests for sampling with a clear error.
func refuseSampling(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method == "sampling/createMessage" {
			return nil, errNoSampling
		}
		return next(ctx, method, req)
	}
}
