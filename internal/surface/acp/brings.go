package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/internal/surface/acp/wire"
	"github.com/fermata-agent/fermata/internal/tool/openfile"
	p "github.com/fermata-agent/fermata/protocol"
)

// definitions are the MCP servers that a client names, in the form of the configuration.
func definitions(list []wire.MCPServer) (map[string]config.MCPServer, error) {
	defs := map[string]config.MCPServer{}
	for i, in := range list {
		def, err := definition(in)
		if _, twice := defs[in.Name]; twice {
			err = fmt.Errorf("there are two servers called %s", in.Name)
		}
		if err != nil {
			return nil, badParams("mcpServers[%d]: %v", i, err)
		}
		defs[in.Name] = def
	}
	return defs, nil
}

func definition(in wire.MCPServer) (config.MCPServer, error) {
	switch {
	case in.Name == "":
		return config.MCPServer{}, fmt.Errorf("a server has no name")
	case in.Type == "http" && in.URL != "":
		return config.MCPServer{URL: in.URL, HTTPHeaders: secrets(in.Headers)}, nil
	case in.Type == "" && in.Command != "":
		return config.MCPServer{Command: in.Command, Args: in.Args, Env: secrets(in.Env)}, nil
	case in.Type != "" && in.Type != "http":
		return config.MCPServer{}, fmt.Errorf("servers of the type %q are not offered: see mcpCapabilities", in.Type)
	}
	return config.MCPServer{}, fmt.Errorf("the server %s has neither a command nor an address", in.Name)
}

func secrets(pairs []wire.Pair) map[string]config.Secret {
	out := map[string]config.Secret{}
	for _, p := range pairs {
		out[p.Name] = config.NewSecret(p.Value)
	}
	return out
}

// bring prepares what the turns of the session are run with beside what the process has. What was brought before ends, unless it is the same. It
// returns what is not used, and why.
func (s *session) bring(in wire.NewSession, defs map[string]config.MCPServer) (remarks []string) {
	s.mu.Lock()
	same := s.brings != nil && reflect.DeepEqual(s.servers, in.MCPServers)
	s.mu.Unlock()
	if same {
		return nil
	}
	s.letGo()
	var open openfile.Buffers
	if s.c.client.Load().FS.Read {
		open = buffers{s}
	}
	brings, warnings := s.c.s.o.Local.OpenClientTools(in.Cwd, defs, open)
	for _, w := range warnings {
		remarks = append(remarks, w.Text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.brings, s.servers = brings, in.MCPServers
	return remarks
}

// letGo ends what was brought.
func (s *session) letGo() {
	s.mu.Lock()
	brings := s.brings
	s.brings = nil
	s.mu.Unlock()
	brings.Close()
}

// run submits an op that makes something run, with what the client brings. What was read from the client is done, also if it leaves meanwhile.
func (s *session) run(ctx context.Context, op p.Op) (p.Receipt, error) {
	s.mu.Lock()
	brings := s.brings
	s.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	if brings != nil {
		ctx = engine.WithClient(ctx, engine.Client{Brings: brings})
	}
	receipt, err := s.c.s.o.Engine.Submit(ctx, s.id, op)
	if err == nil && brings.HasServers() && s.c.s.o.Elsewhere != nil && s.c.s.o.Elsewhere(s.id) && s.firstWarning() {
		s.c.remark(s.c.life, s.id, "another process runs the turns of this conversation: it does not use the MCP servers of the editor")
	}
	return receipt, err
}

// firstWarning reports whether the user was not warned yet, and remembers that.
func (s *session) firstWarning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.warned
	s.warned = true
	return first
}

// buffers are the files that the user has open in the editor.
type buffers struct{ s *session }

// How long the editor may take for a file. Then the disk is read.
const (
	readTime  = 2 * time.Second
	writeTime = 30 * time.Second
)

// Read asks the editor for a file.
func (b buffers) Read(ctx context.Context, path string) (text string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	raw, err := b.s.c.rpc.Call(ctx, "fs/read_text_file", wire.ReadFile{SessionID: string(b.s.id), Path: path})
	var in wire.FileContent
	if err != nil || json.Unmarshal(raw, &in) != nil {
		return "", false
	}
	return in.Content, true
}

// CanWrite reports whether the editor changes files.
func (b buffers) CanWrite() bool { return b.s.c.client.Load().FS.Write }

// Write asks the editor to change a file.
func (b buffers) Write(ctx context.Context, path, text string) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	_, err := b.s.c.rpc.Call(ctx, "fs/write_text_file", wire.WriteFile{SessionID: string(b.s.id), Path: path, Content: text})
	return err
}
