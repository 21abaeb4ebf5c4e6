package proc

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/longtest"
	"github.com/fermata-agent/fermata/internal/proc/tree"
)

// victim is a command that does not want to be stopped. The script sees $MARK,
// which its processes carry in their arguments, and creates $READY when all of
// it is in place. All of it must end by itself after a while: when the code under
// test is broken, nobody else does it.
type victim struct {
	name      string
	script    string
	program   string // needed besides sh, setsid and sleep
	least     int    // processes that a stop must count
	killsShim bool
	storm     bool // takes all processors
	sessions  bool // goes over sessions
}

// respawn is a daemon that answers every polite signal with another copy.
const respawn = `
trap 'setsid sh "$0" "$1" &' TERM HUP INT
echo $$ >> "$0.pids"
end=$(($(date +%s) + 100))
while test $(date +%s) -lt $end; do sleep 100.$1 & wait; done
`

var victims = []victim{
	{name: "plain", script: `sleep 100.$MARK & touch $READY; wait`, least: 2},
	{
		name: "deaf grandchild holding the pipe", least: 3,
		script: `sh -c 'trap "" TERM HUP INT; sh -c "touch $READY; for i in 1 2 3; do sleep 100.$MARK; done" $MARK; :' $MARK; :`,
	},
	{
		name: "daemon that respawns", least: 2,
		script: `printf '%s' "$RESPAWN" > $READY.sh
			(env -i PATH="$PATH" setsid sh $READY.sh $MARK >/dev/null 2>&1 </dev/null &)
			while ! test -s $READY.sh.pids; do sleep 0.01; done
			touch $READY; sleep 100.$MARK; :`,
	},
	{
		name: "fork storm", program: "perl", storm: true,
		script: `perl -e '$SIG{TERM} = "IGNORE"; for (1..4) { fork or do { fork and exit while time < $^T + 60; exit } } select undef, undef, undef, 0.05; open F, ">", $ENV{READY}; sleep 100' $MARK`,
	},
	{
		name: "fork storm over sessions", program: "perl", storm: true, sessions: true,
		script: `perl -MPOSIX -e '$SIG{TERM} = "IGNORE"; for (1..3) { fork or do { while (time < $^T + 60) { POSIX::setsid(); fork and exit } exit } } select undef, undef, undef, 0.05; open F, ">", $ENV{READY}; sleep 100' $MARK`,
	},
	{
		name: "halted grandchild", least: 2,
		script: `sh -c 'touch $READY; kill -STOP $$; sleep 100.$MARK' $MARK; :`,
	},
	{name: "halts its shim", least: 2, script: `kill -STOP $PPID; sleep 100.$MARK & touch $READY; wait`},
	{
		name: "kills its shim", killsShim: true, least: 2,
		script: `(env -i PATH="$PATH" setsid sh -c 'trap "" TERM; for i in 1 2 3; do sleep 100.'$MARK'; done' $MARK &)
			touch $READY; kill -9 $PPID; sleep 100.$MARK; :`,
	},
}

// scene is a victim that is about to be started.
type scene struct {
	mark, ready string
	spec        Spec
}

func (v victim) scene(t *testing.T) scene {
	t.Helper()
	needs(t, "sh", "setsid", "sleep")
	if v.program != "" {
		needs(t, v.program)
	}

	mark := newMark()
	t.Cleanup(func() { killMarked(t, mark) })
	ready := filepath.Join(t.TempDir(), "ready")
	grace := defaultGrace
	if v.storm {
		grace /= 5 // it is deaf, and takes all that others could have
	}
	return scene{mark: mark, ready: ready, spec: Spec{
		Grace: grace,
		Argv:  []string{"sh", "-c", v.script, mark},
		Env: []string{
			"PATH=" + os.Getenv("PATH"), "MARK=" + mark, "READY=" + ready, "RESPAWN=" + respawn,
		},
		Bound: 20 * time.Second, // a slow machine must not fail this; the bound itself is a ladder's
	}}
}

// sideBySide lets the test run beside others, unless the victim keeps the whole machine busy or leaves orphans
// to this process. In a plain run each kind of shim has one storm.
func (v victim) sideBySide(t *testing.T, m mode) {
	t.Helper()
	if v.storm && v.sessions == m.pids && !longtest.On() {
		t.Skip(longtest.ErrOff)
	}
	if !v.storm && !v.killsShim {
		t.Parallel()
	}
}

func (s scene) awaitReady(t *testing.T) {
	t.Helper()
	eventually(t, "the victim is ready", func() bool { return exists(s.ready) })
}

// modes are the two kinds of shim.
var modes = []mode{{"plain", false}, {"namespace", true}}

type mode struct {
	name string
	pids bool
}

// apply makes the command one of this mode.
func (m mode) apply(t *testing.T, spec *Spec) {
	t.Helper()
	if spec.PIDNamespace = m.pids; m.pids && !pidNamespaces() {
		t.Skip("no PID namespaces here")
	}
}

var pidNamespaces = sync.OnceValue(PIDNamespaces)

func TestNothingSurvivesStop(t *testing.T) {
	for _, v := range victims {
		for _, mode := range modes {
			t.Run(v.name+" "+mode.name, func(t *testing.T) {
				if mode.pids && v.killsShim {
					t.Skip("it cannot")
				}
				v.sideBySide(t, mode)
				s, sc := newSpawner(t), v.scene(t)
				mode.apply(t, &sc.spec)
				c, err := s.Start(t.Context(), sc.spec, nil)
				if err != nil {
					t.Fatal(err)
				}
				c.Release()
				if !v.killsShim {
					sc.awaitReady(t)
					c.Stop(errors.New("enough"))
				}
				r := c.Wait()
				noneMarked(t, sc.mark)
				v.check(t, r)
			})
		}
	}
}

// check looks at the account of a stop.
func (v victim) check(t *testing.T, r Result) {
	t.Helper()
	if r.Killed < v.least {
		t.Errorf("killed %d processes, want at least %d", r.Killed, v.least)
	}
	if v.killsShim {
		if !errors.Is(r.Err, ErrShimLost) || r.ExitCode != -1 {
			t.Errorf("result %+v, want the loss of the shim", r)
		}
		return
	}
	if !r.Stopped || r.TimedOut || r.Err != nil || r.ExitCode != -1 || r.Cause == nil || r.Cause.Error() != "enough" {
		t.Errorf("result %+v, want stopped", r)
	}
}

func TestNothingSurvivesTimeout(t *testing.T) {
	t.Parallel()
	s := newSpawner(t)
	var begun []*Command
	var scenes []scene
	for _, v := range victims[:3] { // side by side: most of this is waiting
		sc := v.scene(t)
		sc.spec.Timeout = 2 * time.Second // long enough for the victim to get ready
		c, err := s.Start(t.Context(), sc.spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Release()
		begun, scenes = append(begun, c), append(scenes, sc)
	}
	for i, c := range begun {
		r := c.Wait()
		noneMarked(t, scenes[i].mark)
		if !r.TimedOut || r.Stopped || r.Err != nil || r.ExitCode != -1 || r.Killed == 0 {
			t.Errorf("%s: result %+v, want timed out", victims[i].name, r)
		}
	}
}

// halter halts its shim for as long as both live.
const halter = `exec perl -e '$SIG{TERM} = "IGNORE"; $p = getppid; open F, ">", $ENV{READY}; close F;
	kill "STOP", $p while getppid == $p and time < $^T + 300' $MARK`

// TestNothingSurvivesRepeatedHalt has a command that halts its shim for as long
// as it lives, so that the shim cannot end it and fermata must.
func TestNothingSurvivesRepeatedHalt(t *testing.T) {
	t.Parallel()
	needs(t, "perl")
	s := newSpawner(t)
	v := victim{script: halter}
	for bound := 750 * time.Millisecond; ; bound *= 4 { // of which fermata itself has little, maybe too little for a busy machine
		sc := v.scene(t)
		sc.spec.Bound = bound
		c, err := s.Start(t.Context(), sc.spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Release()
		sc.awaitReady(t)
		c.Stop(errors.New("enough"))
		r := c.Wait()
		if errors.Is(r.Err, ErrSurvivors) && bound < time.Minute {
			continue
		}
		noneMarked(t, sc.mark)
		if !r.Stopped || r.Err != nil {
			t.Errorf("result %+v, want stopped", r)
		}
		return
	}
}

func TestNothingSurvivesKillOfFermata(t *testing.T) {
	// The orphaned shim falls to this process and not to init: so its group is no
	// orphan, and the kernel does not wake it for that reason.
	if err := becomeSubreaper(); err != nil {
		t.Fatal(err)
	}
	for _, v := range victims {
		for _, mode := range modes {
			t.Run(v.name+" "+mode.name, func(t *testing.T) {
				if v.killsShim {
					t.Skip("see TestReclaim")
				}
				v.sideBySide(t, mode)
				sc := v.scene(t)
				mode.apply(t, &sc.spec)
				a := startAgent(t, agentJob{Spec: sc.spec, Warm: true})
				sc.awaitReady(t)
				if len(marked(t, sc.mark)) == 0 {
					t.Fatal("the victim does not live, so this proves nothing")
				}
				a.kill()
				eventually(t, "nothing is left", func() bool {
					return len(marked(t, sc.mark)) == 0 && !livesAs(a.id.PID, a.id.Start)
				})
			})
		}
	}
}

// livesAs reports whether the process of that number and start time lives.
func livesAs(pid int, start uint64) bool {
	p, err := tree.Read(pid)
	return err == nil && p.Start == start && !p.Dead()
}
