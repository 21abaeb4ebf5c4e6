package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
)

// A Status is what is known of a server, for people.
type Status struct {
	Name    string       `json:"name"`
	State   string       `json:"state"`             // see the constants
	Program string       `json:"program,omitempty"` // its name and version as it says
	Project string       `json:"project,omitempty"` // the project whose file defines it
	Tools   []ToolStatus `json:"tools,omitempty"`   // nil if they are not known
	Error   string       `json:"error,omitempty"`   // the last one
	Log     string       `json:"log,omitempty"`     // what it printed last
	Took    string       `json:"took,omitempty"`    // how long its start took
	Address string       `json:"-"`                 // scheme and host of its URL; empty if it is a command
	Token   bool         `json:"-"`                 // it is sent a token or a header for authorization
	Login   string       `json:"login,omitempty"`   // whether the person is logged in, if that was needed
}

// A ToolStatus is a tool of a server.
type ToolStatus struct {
	Name        string             `json:"name"` // as the server has it
	Description string             `json:"description,omitempty"`
	Approval    config.MCPApproval `json:"approval"` // what holds unless the sandbox is off
	ReadOnly    bool               `json:"-"`        // as the server says
	Parameters  json.RawMessage    `json:"-"`        // as a JSON schema
}

// The states of a server.
const (
	NotStarted = "not started"
	Starting   = "starting"
	Running    = "running"
	Failed     = "failed"
)

// Status returns the state of all servers, in the order of their names. It never blocks.
func (all *Servers) Status(now Approvals) []Status {
	list := make([]Status, len(all.list))
	for i, s := range all.list {
		list[i] = s.status(now)
	}
	return list
}

func (s *server) status(now Approvals) Status {
	st := s.state.Load()
	out := Status{Name: s.name, State: NotStarted, Project: s.def.Project, Address: origin(s.def.URL), Token: hasToken(s.def)}
	switch {
	case st.starting:
		out.State = Starting
	case st.live != nil && !st.live.over():
		out.State = Running
	case st.err != nil || st.live != nil:
		out.State = Failed
	}
	if st.err != nil {
		out.Error = st.err.Error()
	}
	if ss := st.live; ss != nil {
		out.Took = ss.took.Round(time.Millisecond).String()
		if info := ss.sdk.InitializeResult().ServerInfo; info != nil {
			out.Program = strings.TrimSpace(info.Name + " " + info.Version)
		}
		if ss.authorizer != nil && ss.authorizer.login.Load() != nil {
			out.Login = LoginSaved
		}
		if ss.process != nil {
			out.Log = ss.process.log()
		}
	}
	for _, known := range st.tools {
		t := known.with(now)
		out.Tools = append(out.Tools, ToolStatus{
			Name: t.of.Name, Description: t.spec.Description, Approval: t.effective(), ReadOnly: t.readOnly, Parameters: t.spec.Parameters,
		})
	}
	return out
}

// origin is the scheme and the host of an address: what may be shown of it.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// hasToken reports whether the server is sent something that says who we are.
func hasToken(def config.MCPServer) bool {
	isAuth := func(name string) bool { return strings.EqualFold(name, "authorization") }
	return def.BearerTokenEnvVar != "" || slices.ContainsFunc(slices.Collect(maps.Keys(def.HTTPHeaders)), isAuth) ||
		slices.ContainsFunc(slices.Collect(maps.Keys(def.EnvHTTPHeaders)), isAuth)
}

// Check starts all servers, waits until each has listed its tools or failed, and
// returns their state. The caller calls Close.
func (all *Servers) Check(ctx context.Context, now Approvals) []Status {
	var wait sync.WaitGroup
	for _, s := range all.list {
		wait.Go(func() { _, _ = s.session(ctx) }) // ended by ctx and by the time limit of the start; the state has the error
	}
	wait.Wait()
	return all.Status(now)
}

// effective is whether the tool may be called where the sandbox is on.
func (t *Tool) effective() config.MCPApproval {
	switch a := t.approval(); {
	case a != "":
		return a
	case t.readOnly:
		return config.MCPAllow
	}
	return config.MCPAsk
}

// Describe puts a list of states into words: a line for each server, then its tools, its
// last error and what it printed.
func Describe(list []Status) string {
	var b strings.Builder
	for _, s := range list {
		parts := []string{s.State}
		if s.Program != "" {
			parts = append(parts, s.Program)
		}
		if s.Login != "" {
			parts = append(parts, s.Login)
		}
		if s.Project != "" {
			parts = append(parts, "of the project "+s.Project)
		}
		fmt.Fprintf(&b, "%s: %s\n", s.Name, strings.Join(parts, ", "))
		byApproval := map[config.MCPApproval][]string{}
		for _, t := range s.Tools {
			byApproval[t.Approval] = append(byApproval[t.Approval], t.Name)
		}
		for _, a := range []config.MCPApproval{config.MCPAllow, config.MCPAsk, config.MCPDeny} {
			if names := byApproval[a]; len(names) > 0 {
				fmt.Fprintf(&b, "  %s: %s\n", a, strings.Join(names, ", "))
			}
		}
		if s.Error != "" {
			fmt.Fprintf(&b, "  last error: %s\n", s.Error)
		}
		if s.Log != "" {
			fmt.Fprintf(&b, "  it printed:\n    %s\n", strings.ReplaceAll(s.Log, "\n", "\n    "))
		}
	}
	return b.String()
}
