package project

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-agent/fermata/internal/config"
	"github.com/fermata-agent/fermata/protocol"
)

// TestPermissionsGivenAtTheSameTime: each of several processes reads the file and writes it again.
func TestPermissionsGivenAtTheSameTime(t *testing.T) {
	l, repo := start(t, "# mine\n")
	var wait sync.WaitGroup
	for i := range 8 {
		other, err := load(l.Config.Home) // as another process has it
		if err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			for _, p := range []Permission{{Dir: repo, Prefix: []string{"tool", fmt.Sprint(i)}}, {Dir: repo, Tool: protocol.MCPTool{Server: "s", Name: fmt.Sprint(i)}}} {
				if err := other.Projects.Allow(p); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if got := l.Projects.Permissions(repo); len(got) != 16 {
		t.Errorf("%d permissions are left: %v", len(got), got)
	}
}

func TestAToolThatIsAllowed(t *testing.T) {
	l, repo := start(t, "# mine\n[mcp_servers.own]\ncommand = \"own\" # my own\napproval = \"ask\"\n")
	s := l.Projects
	own, theirs := protocol.MCPTool{Server: "own", Name: "delete"}, protocol.MCPTool{Server: "docs", Name: "write.all"}
	if got := s.ToolApproval("", own); got != config.MCPAsk {
		t.Errorf("at first %q", got)
	}
	perms := []Permission{s.OfferTool(own, repo), s.OfferTool(theirs, filepath.Join(repo, "sub"))}
	if perms[0].Dir != "" || perms[1].Dir != repo {
		t.Errorf("offered %+v", perms)
	}
	for _, p := range append(perms, perms...) {
		if err := s.Allow(p); err != nil {
			t.Fatal(err)
		}
	}
	again, err := load(l.Config.Home) // another process
	if err != nil {
		t.Fatal(err)
	}
	for _, store := range []*Store{s, again.Projects} {
		if store.ToolApproval("", own) != config.MCPAllow || store.ToolApproval(repo, theirs) != config.MCPAllow {
			t.Error("not remembered")
		}
		if store.ToolApproval("", theirs) != "" || store.ToolApproval(repo, own) != "" || store.ToolApproval(filepath.Dir(repo), theirs) != "" {
			t.Error("something else is allowed, too")
		}
		if got := fmt.Sprint(store.Permissions(repo)); got != "[own.delete docs.write.all]" {
			t.Error(got)
		}
	}
	text, _ := os.ReadFile(filepath.Join(l.Config.Home, config.FileName))
	if !strings.Contains(string(text), "# mine") || !strings.Contains(string(text), "# my own") || strings.Count(string(text), "write.all") != 1 {
		t.Errorf("%s", text)
	}

	for _, name := range []string{"own.delete", "docs.write.all"} {
		p, err := again.Projects.FindTool(name, repo)
		if err == nil {
			err = again.Projects.Revoke(p)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Projects.Revoke(p); !errors.Is(err, ErrNoPermission) {
			t.Errorf("revoked twice: %v", err)
		}
	}
	if s.ToolApproval("", own) != config.MCPAsk || s.ToolApproval(repo, theirs) != "" || len(s.Permissions(repo)) != 0 {
		t.Error("the first process did not notice")
	}
	if _, err := s.FindTool("docs.none", repo); !errors.Is(err, ErrNoPermission) {
		t.Error(err)
	}
	if err := s.Allow(Permission{Tool: theirs}); err == nil {
		t.Error("a server that is not in the file was allowed")
	}
}
