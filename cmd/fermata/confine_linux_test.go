package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/proc/tree"
)

// A station is a kind of user on a kind of machine.
type station struct {
	name string
	uid  uint32
	bare bool // without namespaces of any kind
}

var stations = []station{{"root", 0, false}, {"user", nobody, false}, {"user without namespaces", nobody, true}}

// bare takes all namespaces away from what it runs.
const bare = `for n in user mnt pid ipc; do echo 0 > /proc/sys/user/max_${n}_namespaces; done; exec "$@"`

// place is a place for the station, with its working directory in the home.
func (s station) place(t *testing.T) *place {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can be all of them")
	}
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip(err)
	}
	pl := newPlaceFor(t, s.uid)
	pl.work = filepath.Join(pl.dir, "home")
	return pl
}

// at is a command at the station.
func (s station) at(ctx context.Context, pl *place, args ...string) *exec.Cmd {
	cmd := pl.command(ctx, args...)
	if s.bare {
		unshare, err := exec.LookPath("unshare")
		if err != nil {
			pl.t.Skip(err)
		}
		cmd.Path, cmd.Args = unshare, append([]string{"unshare", "-Ur", "sh", "-c", bare, "sh", pl.bin}, args...)
	}
	return cmd
}

// sandboxed runs a script as a confined command.
func (s station) sandboxed(t *testing.T, pl *place, mode, script string, flags ...string) string {
	t.Helper()
	args := append([]string{"sandbox", "--sandbox", mode}, flags...)
	out, err := s.at(t.Context(), pl, append(args, "--", "sh", "-c", script)...).CombinedOutput()
	if err != nil && !strings.Contains(err.Error(), "exit status") {
		t.Fatalf("%v: %s", err, out)
	}
	if strings.Contains(string(out), "cannot confine") {
		t.Skipf("%s", out)
	}
	return string(out)
}

// dial connects to each of its arguments. Those of the form from:to are links to make first, those of the form from>to files to move.
const dial = `perl -MSocket -e 'for (@ARGV) {
	if (/(.*):(.*)/) { link $1, $2; next } if (/(.*)>(.*)/) { rename $1, $2; next }
	socket my $s, PF_UNIX, SOCK_STREAM, 0 or die; print connect($s, pack_sockaddr_un($_)) ? "connected\n" : "$_: $!\n" }' `

// TestLocalSocketsOnTheBinary has a server of the same user, as a terminal
// multiplexer is, in a place that the command can write.
func TestLocalSocketsOnTheBinary(t *testing.T) {
	t.Parallel()
	for _, s := range stations {
		t.Run(s.name, func(t *testing.T) {
			pl := s.place(t)
			socket := filepath.Join(pl.work, "s")
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if err := os.Chmod(socket, 0o777); err != nil {
				t.Fatal(err)
			}
			if out := s.sandboxed(t, pl, "danger-full-access", dial+"$HOME/s"); out != "connected\n" {
				t.Fatalf("full access: %s", out)
			}
			attacks := "cd $HOME; " + dial + "$HOME/s s s:l l 's>t' t s 't>s' /proc/self/cwd/s"
			for _, mode := range []string{"read-only", "workspace-write"} {
				if out := s.sandboxed(t, pl, mode, attacks); strings.Contains(out, "connected") || !strings.Contains(out, "Permission denied") {
					t.Errorf("%s: %s", mode, out)
				}
			}
			if out := s.sandboxed(t, pl, "workspace-write", attacks, "-c", "sandbox_workspace_write.network_access=true"); strings.Contains(out, "connected") {
				t.Errorf("with the network: %s", out)
			}
			sub := filepath.Join(pl.work, "sub") // without mounts nothing new can be made above it
			if err := errors.Join(os.Mkdir(sub, 0o755), os.Chown(sub, int(s.uid), int(s.uid))); err != nil {
				t.Fatal(err)
			}
			own := `perl -MIO::Socket::UNIX -e 'my $l = IO::Socket::UNIX->new(Local => "sub/own-$$", Listen => 1) or die "$!\n";
				if (fork) { my $c = $l->accept; print <$c> } else { my $s = IO::Socket::UNIX->new(Peer => "sub/own-".getppid) or die "$!\n"; print $s "own socket\n" } unlink "sub/own-$$"'`
			if out := s.sandboxed(t, pl, "workspace-write", own); !strings.Contains(out, "own socket") {
				t.Errorf("its own socket: %s", out)
			}
		})
	}
}

// TestPlantedHomeOnTheBinary lets a command plant a configuration whose program the
// next run would execute.
func TestPlantedHomeOnTheBinary(t *testing.T) {
	t.Parallel()
	const plant = `mkdir -p evil; printf 'notify = ["sh", "-c", "touch %s/owned"]\n' "$HOME" > evil/config.toml; `
	for i, s := range stations {
		for j, c := range []struct{ name, setup, attack string }{
			{"a link", `mkdir real; ln -s real fermata`, plant + `rm fermata; mv evil fermata`},
			{"a link's target", `mkdir -p a/real; ln -s a/real fermata`, plant + `mv a b; mkdir a; mv evil a/real`},
			{"it does not exist", ``, plant + `mv evil fermata`},
			{"configuration is a link", `mkdir dot fermata; touch dot/config.toml; ln -s ../dot/config.toml fermata/config.toml`, plant + `cat evil/config.toml > dot/config.toml; mv evil/config.toml dot/config.toml`},
		} {
			if !longtest.On() && !s.bare && j%2 != i { // a plain run has each way with mounts and without
				continue
			}
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				pl := s.place(t)
				setup := s.at(t.Context(), pl)
				setup.Path, setup.Args = "/bin/sh", []string{"sh", "-c", c.setup}
				if out, err := setup.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				out := s.sandboxed(t, pl, "workspace-write", "cd $HOME; "+c.attack)
				next, err := s.at(t.Context(), pl, "exec", "--demo", "--skip-git-repo-check", "talk 1").CombinedOutput()
				if err != nil {
					t.Fatalf("the next run: %v: %s", err, next)
				}
				if _, err := os.Lstat(filepath.Join(pl.work, "owned")); err == nil {
					t.Errorf("the next run executed what was planted (%s)", out)
				}
			})
		}
	}
}

// TestNothingExecutedIsPlanted changes what a linked configuration leads to, the script of notify and the
// program of an MCP server, by patches and by commands.
func TestNothingExecutedIsPlanted(t *testing.T) {
	t.Parallel()
	pl := newPlace(t)
	home := filepath.Join(pl.dir, "home", "fermata")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	mine := fmt.Sprintf("notify = [\"sh\", %q]\n[mcp_servers.own]\ncommand = \"./server\"\n", filepath.Join(pl.work, "notify.sh"))
	names := []string{"config.toml", "notify.sh", "server"}
	pl.file("config.toml", mine)
	pl.file("notify.sh", mine)
	pl.file("server", mine)
	if err := os.Symlink(filepath.Join(pl.work, "config.toml"), filepath.Join(home, "config.toml")); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		pl.run("exec", "--demo", "-s", "workspace-write", "write "+name+": planted")
		pl.run("exec", "--demo", "-s", "workspace-write", "run: echo planted > "+name+"; echo planted > new; mv new "+name)
		if b, err := os.ReadFile(filepath.Join(pl.work, name)); err != nil || string(b) != mine {
			t.Errorf("%s was changed: %s%v", name, b, err)
		}
	}
	pl.must("exec", "--demo", "-s", "workspace-write", "write other: text")
	if b, err := os.ReadFile(filepath.Join(pl.work, "other")); err != nil || !strings.Contains(string(b), "text") {
		t.Errorf("other files cannot be written: %s%v", b, err)
	}
}

// TestSecretsOnTheBinary looks for keys and for the sockets of running processes.
func TestSecretsOnTheBinary(t *testing.T) {
	t.Parallel()
	for _, s := range stations {
		t.Run(s.name, func(t *testing.T) {
			pl := s.place(t)
			home := filepath.Join(pl.work, "fermata")
			for _, name := range []string{"run/s", "keys/k", ".env", "auth.json"} {
				file := filepath.Join(home, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte("FOO=secret\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			const look = `cat $HOME/fermata/run/s $HOME/fermata/keys/k $HOME/fermata/.env $HOME/fermata/auth.json; cat /etc/passwd | head -1`
			for mode, want := range map[string]bool{"read-only": false, "workspace-write": false, "danger-full-access": true} {
				out := s.sandboxed(t, pl, mode, look)
				if strings.Contains(out, "secret") != want || !strings.Contains(out, "root:") {
					t.Errorf("%s: %s", mode, out)
				}
			}
		})
	}
}

// Each of these pauses for an instant in between: the processes that it may have would otherwise take the processors from
// whoever is to end it, and from all other tests, until its time is over.

// storm hops from session to session, with as many processes as it may have.
const storm = `perl -MPOSIX -e '$SIG{TERM} = "IGNORE"; if (fork) { sleep 300; exit } for (1..40) { fork or last }
	open F, ">", "ready"; close F; while (time < $^T + 300) { my $p = fork; next unless defined $p; if ($p) { exit } POSIX::setsid(); select undef, undef, undef, 0.002 }'`

// bomb fills up all processes that it may have, of which none ends.
const bomb = `perl -e '$SIG{TERM} = "IGNORE"; my $n = 0; while (time < $^T + 300) { my $p = fork; next if defined $p;
	if (!$n++) { open F, ">", "ready"; close F } select undef, undef, undef, 0.01 }'`

// scattered is a bomb of which each process leads a session of its own: no group can be
// killed as one.
const scattered = `perl -MPOSIX -e '$SIG{TERM} = "IGNORE"; my $n = 0; while (time < $^T + 300) { my $p = fork; if (defined $p) { POSIX::setsid() unless $p; next }
	if (!$n++) { open F, ">", "ready"; close F } select undef, undef, undef, 0.01 }'`

// A plain run has each of them, and each way to run a command, once.

// TestForkBombOnTheBinary interrupts it, in the sandbox and without.
func TestForkBombOnTheBinary(t *testing.T) {
	interruptStorm(t, bomb, [][]string{{"-s", "workspace-write"}, {"-s", "workspace-write", "-c", "pid_namespace=false"}, {"-s", "danger-full-access"}}[:longtest.Default(3, 1)])
}

// TestScatteredBombOnTheBinary interrupts one that only halting it first can end.
func TestScatteredBombOnTheBinary(t *testing.T) {
	interruptStorm(t, scattered, [][]string{{"-s", "workspace-write", "-c", "pid_namespace=false"}, {"-s", "danger-full-access"}}[:longtest.Default(2, 1)])
}

// TestForkStormOnTheBinary interrupts it at the limit of processes.
func TestForkStormOnTheBinary(t *testing.T) {
	interruptStorm(t, storm, [][]string{
		{"-s", "danger-full-access"}, {"-s", "workspace-write"}, {"-s", "workspace-write", "-c", "pid_namespace=false"},
	}[:longtest.Default(3, 1)])
}

// interruptStorm runs a script as a user of its own with few processes, and interrupts
// it when it has used them up.
func interruptStorm(t *testing.T, storm string, flags [][]string) {
	uid := uint32(60_000 + os.Getpid()%5000) // nobody else's, nor that of another run
	for _, flags := range flags {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			pl := station{uid: uid}.place(t)
			t.Cleanup(func() { endAll(t, uid) })
			pl.file("storm", storm)
			var out strings.Builder
			cmd := pl.command(t.Context(), append([]string{"exec", "--demo", "--skip-git-repo-check", "run: sh storm"}, flags...)...)
			cmd.Stdout, cmd.Stderr = &out, &out
			cmd.Path, cmd.Args = "/bin/bash", append([]string{"bash", "-c", `ulimit -u 200; exec "$@"`, "bash", pl.bin}, cmd.Args[1:]...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = cmd.Wait()
			}()
			eventually(t, "the storm blows", func() bool {
				select {
				case <-ended:
					t.Fatalf("%v: %s", cmd.ProcessState, out.String())
				default:
				}
				return exists(filepath.Join(pl.work, "ready"))
			})
			_ = cmd.Process.Signal(os.Interrupt) // if it has ended, its exit code tells
			<-ended
			if strings.Contains(out.String(), "goroutine ") || strings.Contains(out.String(), "SIGABRT") {
				t.Errorf("it crashed: %s", out.String())
			}
			if code := cmd.ProcessState.ExitCode(); code != 130 {
				t.Errorf("exit code %d: %s", code, out.String())
			}
			eventually(t, "nothing of it is left", func() bool { return len(processesOf(t, uid)) == 0 })
		})
	}
}

// processesOf lists the living processes of a user.
func processesOf(t *testing.T, uid uint32) []tree.Process {
	t.Helper()
	table, err := tree.Table()
	if err != nil {
		t.Fatal(err)
	}
	var list []tree.Process
	for _, p := range table {
		var st unix.Stat_t
		if unix.Stat("/proc/"+strconv.Itoa(p.PID), &st) == nil && st.Uid == uid && !p.Dead() {
			list = append(list, p)
		}
	}
	return list
}

// endAll kills all processes of a user, if a broken stop has left some.
func endAll(t *testing.T, uid uint32) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); len(processesOf(t, uid)) > 0 && time.Now().Before(deadline); {
		cmd := exec.Command("/bin/sh", "-c", "kill -9 -1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		_ = cmd.Run()
	}
}
