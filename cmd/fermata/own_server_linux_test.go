package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/secrets"
)

// useServer is a client of the app-server that runs a command without a sandbox: perl use FILE-WITH-TOKEN HOST PORT MARK.
const useServer = `use IO::Socket::INET;
my ($file, $host, $port, $mark) = @ARGV;
my $token = ""; if (open my $f, "<", $file) { $token = <$f> // "" } chomp $token; print "token: $token.\n";
my $s = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port) or do { print "connect: $!\n"; exit };
print "connected\n";
print $s "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nAuthorization: Bearer $token\r\n\r\n";
sub text { my $m = shift; print $s pack("CCnN", 0x81, 0xfe, length $m, 0), $m; }
text('{"id":1,"method":"initialize","params":{"clientInfo":{"name":"t","version":"1"}}}');
text('{"method":"initialized"}');
text('{"id":2,"method":"command/exec","params":{"command":["touch","' . $mark . '"],"sandboxPolicy":{"type":"dangerFullAccess"}}}');
$s->flush;
while (sysread $s, my $b, 4096) { print "$b\n"; last if $b =~ /"id":2/ }
`

// A confined command with network access reads the token of an app-server of the same home, connects to it and has it run a
// command with full access. It gets no further than to try: the server may belong to its own process or to another one.
func TestCommandCannotUseItsServer(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip(err)
	}
	asEachUser(t, func(t *testing.T, pl *place) {
		const token = "0123456789abcdef"
		pl.as(`echo ` + token + ` > token; ln -s token link; cat > use <<'END'
` + useServer + "\nEND")
		mark := filepath.Join(pl.dir, "home", "mark")
		server := pl.start("app-server", "--demo", "--listen", "ws://127.0.0.1:0", "--ws-auth", "capability-token", "--ws-token-file", "link")
		port := ""
		eventually(t, "the server listens", func() bool {
			m := regexp.MustCompile(`ws://127\.0\.0\.1:(\d+)`).FindStringSubmatch(server.err.String())
			if m != nil {
				port = m[1]
			}
			return m != nil
		})
		attack := fmt.Sprintf("run: perl use token 127.0.0.1 %s %s", port, mark)
		network := []string{"-c", "sandbox_workspace_write.network_access=true"}
		out, errs, _ := pl.run(append([]string{"exec", "--demo", "--skip-git-repo-check", "-s", "workspace-write", attack}, network...)...)
		if !strings.Contains(out+errs, "token: .") || !strings.Contains(out+errs, "connect: Permission denied") || exists(mark) {
			t.Errorf("it got through: %s%s", out, errs)
		}
		// A command with full access has the user's rights: else this proves nothing.
		out, errs, _ = pl.run("exec", "--demo", "--skip-git-repo-check", "-s", "danger-full-access", attack)
		if !exists(mark) {
			t.Errorf("the attack does not work: %s%s", out, errs)
		}
	})
}

// Flags that name a file with a secret are of the type that registers it.
func TestFlagsOfSecretFiles(t *testing.T) {
	t.Parallel()
	looks := regexp.MustCompile(`token|key|secret|cred|password|seed`)
	found := 0
	eachCommand(newRoot(cli.Stdio()), func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			_, isFile := f.Value.(*secrets.File)
			if isFile {
				found++
			}
			if !isFile && looks.MatchString(f.Name) && strings.Contains(f.Usage, "FILE") {
				t.Errorf("%s --%s: use secrets.File", c.CommandPath(), f.Name)
			}
		})
	})
	if found < 4 {
		t.Errorf("only %d flags were found", found)
	}
}
