//go:build unix

package proc

import (
	"encoding/json"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/fermata-agent/fermata/internal/proc/socket"
	"github.com/fermata-agent/fermata/internal/proc/tree"
)

// The shim is recognised by the name it was given and its part.
const (
	shimName = "fermata-shim"

	partSupervise = "supervise" // the shim proper
	partStage     = "stage"     // what becomes a confined command
	partProbe     = "probe"     // tries whether a PID namespace can be had

	userSuffix = "+user" // the stage lives, or shall live, in a user namespace
	pidsSuffix = "+pids" // the shim is the first process of a PID namespace

	scopedSuffix = "+scoped" // the command may signal its own processes only
	stagedSuffix = "+staged" // a stage becomes the command
)

// part names a part that is played for a kind.
func (k kind) part(name string) string {
	if k.user {
		name += userSuffix
	}
	if k.pids {
		name += pidsSuffix
	}
	if k.scoped {
		name += scopedSuffix
	}
	if k.staged {
		name += stagedSuffix
	}
	return name
}

// parsePart is the reverse.
func parsePart(text string) (name string, k kind) {
	name, k.staged = strings.CutSuffix(text, stagedSuffix)
	name, k.scoped = strings.CutSuffix(name, scopedSuffix)
	name, k.pids = strings.CutSuffix(name, pidsSuffix)
	name, k.user = strings.CutSuffix(name, userSuffix)
	return name, k
}

// File descriptors of shim and stage, besides the standard three.
const (
	controlFD = 3
	statusFD  = 4
	socketFD  = 5 // see Spec.Serve
	keptFDs   = 6 // the first one that is not ours
)

// IsShim reports whether this process was started by a Spawner. main asks first
// of all, and if so does nothing else but call ShimMain.
func IsShim() bool {
	return len(os.Args) == 2 && os.Args[0] == shimName
}

// Confiner confines commands that have a Spec.Confine. The zero value is for
// programs that have none.
type Confiner struct {
	// Apply restricts the calling process for good. It runs in the process that
	// becomes the command, on the thread that will exec, so that restricting this
	// thread is enough. The file, if it is not nil, is given to Serve.
	Apply func(spec json.RawMessage) (*os.File, error)

	// Serve answers what the confinement leaves to the shim to decide. It runs in
	// the shim, which is not confined and is the ancestor of all processes of the
	// command, in a goroutine of its own until the shim ends. It may be nil.
	Serve func(spec json.RawMessage, f *os.File)
}

// ShimMain is the main function of the processes between fermata and a command.
// The result is the exit code.
func ShimMain(c Confiner) int {
	part, k := parsePart(os.Args[1])
	if k.pids {
		if err := enterNamespace(); err != nil {
			return 1
		}
	}
	switch part {
	case partSupervise:
		return superviseMain(k, c.Serve)
	case partStage:
		return stageMain(k, c.Apply)
	case partProbe:
		return 0
	}
	return 2
}

// serveFunc is Confiner.Serve.
type serveFunc func(spec json.RawMessage, f *os.File)

// supervisor is the shim: it owns one tree from beginning to end.
type supervisor struct {
	status *json.Encoder
	stage  *os.File // orders to the stage; nil without one
	leader int      // 0 until there is a process
	begun  bool     // what became of the stage was reported to fermata
	asked  bool     // a caller asked for the end; written before stop is closed

	orders  chan order    // one, or closed
	release chan struct{} // closed when released
	stop    chan struct{} // closed at the end of the lifeline, or when a caller asks for the end
	failed  chan *failure // one value: nil when the stage became the command
	reaper  *reaper
	serve   serveFunc            // may be nil
	stages  chan json.RawMessage // one: the order of the stage, for serve
	scoped  bool                 // signals of this thread reach the tree only
	lease   deadline
	group   *tree.Cgroup // holds the tree; may be nil
}

// superviseMain sets the stage up and supervises it.
func superviseMain(k kind, serve serveFunc) int {
	asked := catchSignals()
	if err := prepareShim(); err != nil {
		return 1
	}
	runtime.LockOSThread() // this one starts the command and kills it
	scoped := k.scoped && scopeSignals()
	var group *tree.Cgroup
	if !k.pids && !scoped { // who has neither can be killed at once by this
		group = tree.NewCgroup()
		defer group.Remove()
	}
	s := &supervisor{
		status:  json.NewEncoder(os.NewFile(statusFD, "status")),
		orders:  make(chan order, 1),
		release: make(chan struct{}),
		stop:    make(chan struct{}),
		failed:  make(chan *failure, 1),
		reaper:  newReaper(),
		serve:   serve,
		stages:  make(chan json.RawMessage, 1),
		scoped:  scoped,
		group:   group,
		lease:   deadline{ended: make(chan struct{})},
	}
	if k.staged && !s.startStage(k) {
		return 1
	}
	hideFromTracers()
	lifeline := make(chan struct{})
	go s.readControl(lifeline)
	go func() {
		select {
		case <-lifeline:
		case <-s.lease.ended:
		case <-asked:
			s.asked = true
		}
		close(s.stop)
	}()
	s.say(report{Hello: &hello{Leader: s.leader, Cgroup: s.group.Dir()}})
	reserveThreads(shimThreads) // before the command can use them up; a spare has the time
	s.supervise()
	return 0
}

// catchSignals makes the shim deaf to polite signals but one, on which it
// returns a channel. They are caught and not ignored, because the command would
// inherit the latter.
func catchSignals() <-chan os.Signal {
	signal.Notify(make(chan os.Signal, 1),
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU,
		syscall.SIGUSR1, syscall.SIGALRM)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, tree.EndSignal)
	return asked
}

// startStage starts the second half of the shim, and what listens to it.
func (s *supervisor) startStage(k kind) bool {
	stage, failed, leader, err := startStage(k, s.group)
	if err != nil && s.group != nil {
		s.group.Remove()
		s.group = nil
		stage, failed, leader, err = startStage(k, nil)
	}
	if err != nil {
		return false
	}

	_ = syscall.Close(socketFD) // it is the command's
	s.stage, s.leader = stage, leader
	go s.reaper.run(leader)
	go s.readStage(failed)
	return true
}

// startStage starts a stage, in its own session. It returns
// the pipe for its orders and the socket on which it reports.
func startStage(k kind, group *tree.Cgroup) (orders, failed *os.File, leader int, err error) {
	ordersR, orders, err := os.Pipe()
	if err != nil {
		return nil, nil, 0, err
	}
	defer ordersR.Close()

	failed, failedW, err := socket.Pair()
	if err != nil {
		return nil, nil, 0, err
	}
	defer failedW.Close()

	exe, err := ownExecutable()
	if err != nil {
		return nil, nil, 0, err
	}
	attr := &syscall.SysProcAttr{Setsid: true}
	if k.user {
		if err := userNamespaceAttr(attr); err != nil {
			return nil, nil, 0, err
		}
	}
	bornIn(attr, group)
	stage := kind{user: k.user} // it is in the PID namespace already
	leader, err = reserving(k.user, func() (int, error) {
		return syscall.ForkExec(exe, []string{shimName, stage.part(partStage)}, &syscall.ProcAttr{
			Env:   os.Environ(),
			Files: []uintptr{0, 1, 2, ordersR.Fd(), failedW.Fd(), socketFD},
			Sys:   attr,
		})
	})
	return orders, failed, leader, err
}

// readControl reads the lifeline until fermata dies or wants the end.
func (s *supervisor) readControl(ended chan<- struct{}) {
	defer close(ended)
	in := json.NewDecoder(os.NewFile(controlFD, "control"))
	var o order
	if in.Decode(&o) != nil {
		return
	}
	s.lease.set(o.Until)
	s.orders <- o

	var r release
	if in.Decode(&r) != nil || !r.Release {
		return
	}
	close(s.release)
	for in.Decode(&r) == nil { // only the end of file ends it
		s.lease.set(r.Until)
	}
}

// readStage learns what became of the stage, and serves its confinement. The
// stage has closed its end when it became the command or when it is dead.
func (s *supervisor) readStage(from *os.File) {
	defer from.Close()
	var text []byte
	for {
		b, f, err := socket.Receive(from)
		if f != nil && s.serve != nil {
			go s.serveStage(f) // ended by the end of this process
		}
		if err != nil || len(b) == 0 {
			break
		}
		text = append(text, b...)
	}
	var f failure
	if json.Unmarshal(text, &f) != nil {
		s.failed <- nil
		return
	}
	s.failed <- &f
}

// serveStage serves the confinement of the stage, of which f came.
func (s *supervisor) serveStage(f *os.File) {
	var o struct {
		Confine json.RawMessage `json:"confine"`
	}
	if json.Unmarshal(<-s.stages, &o) != nil {
		f.Close() // nothing is allowed that is left to us
		return
	}
	s.serve(o.Confine, f)
}

// say reports to fermata. If it is dead there is no one to report to.
func (s *supervisor) say(r report) { _ = s.status.Encode(r) }

// supervise is the life of one command.
func (s *supervisor) supervise() {
	var o order
	select {
	case o = <-s.orders:
	case <-s.stop:
		s.abandon()
		return
	case <-s.reaper.gone:
		s.sayUnable()
		return
	}

	if s.stage == nil {
		s.superviseDirect(o)
		return
	}

	s.stages <- o.Stage
	go s.command(o.Stage)
	select {
	case <-s.release:
	case <-s.stop:
		s.abandon()
		return
	case <-s.reaper.gone:
		s.sayUnable() // it does not wait for its release then
		return
	}
	if s.begin() {
		s.follow(o)
		return
	}
	<-s.reaper.gone
}

// command passes the orders on. It has its own goroutine because a halted stage
// would not read; the end of this process ends it.
func (s *supervisor) command(text json.RawMessage) {
	to := json.NewEncoder(s.stage)
	if to.Encode(text) != nil {
		return
	}
	<-s.release
	_ = to.Encode(release{Release: true})
}

// abandon ends a stage that was never released, if there is one: nothing ran.
func (s *supervisor) abandon() {
	if s.stage != nil {
		s.end(order{Bound: defaultBound})
	}
	s.say(report{Idle: &struct{}{}})
}

// begin waits until the stage is the command, or reports why it is not.
func (s *supervisor) begin() bool {
	select {
	case f := <-s.failed:
		return s.sayBegun(f)
	case <-s.stop:
		return true // the ladder ends it, whatever it is now
	}
}

// sayUnable reports why the stage has ended without a release.
func (s *supervisor) sayUnable() {
	f := <-s.failed
	if f == nil {
		f = &failure{Text: "it was killed before it began"}
	}
	s.say(report{Failed: f})
}

// sayBegun reports why the stage is not the command, if so.
func (s *supervisor) sayBegun(f *failure) bool {
	s.begun = true
	if f != nil {
		s.say(report{Failed: f})
		return false
	}
	return true
}

// follow waits for the end of the command and then ends what is left.
func (s *supervisor) follow(o order) {
	select {
	case <-s.reaper.exited:
		s.say(report{Exited: s.reaper.status()})
		s.linger(o.Linger)
		after := s.end(o)
		s.say(report{Gone: after})
		s.keepKilling(after)
	case <-s.stop:
		after := s.end(o)
		after.Asked = s.asked
		s.sayEnd(after)
	}
}

// sayEnd reports after a stop, which may have come so early that fermata does
// not know yet whether the command began.
func (s *supervisor) sayEnd(after *aftermath) {
	st := s.reaper.status()
	if !s.begun && st != nil {
		s.sayBegun(<-s.failed)
	}
	if st != nil {
		s.say(report{Exited: st})
	}
	s.say(report{Gone: after})
	s.keepKilling(after)
}

// keepKilling goes on where the bound ended the ladder: fermata has its answer, or is
// dead, and only we are left to end what still runs.
func (s *supervisor) keepKilling(after *aftermath) {
	for range 60 {
		if after == nil || after.Left == 0 {
			return
		}
		after = s.end(order{Bound: time.Second})
	}
}

// end runs the ladder over the tree.
func (s *supervisor) end(o order) *aftermath {
	hurry()
	over := s.lease.over.Load()
	if over {
		o.Grace = 0 // another may run it now
	}
	l := &tree.Ladder{
		Grace: o.Grace, Bound: o.Bound, Now: over,
		Tree:        func() ([]tree.Process, error) { return commandTree(s.leader) },
		Signal:      tree.Signal,
		SignalGroup: tree.SignalGroup,
		KillFirst: func() {
			tree.KillAll(s.scoped)
			s.group.Kill()
		},
		Halt:  s.mustHalt(),
		Sweep: tree.SweepChildren,
		Found: func(n int) { s.say(report{Ending: &ending{Found: n}}) },
	}
	if canAdopt {
		l.Gone = s.reaper.gone
	}
	killed, left := l.Run()
	return &aftermath{Killed: killed, Left: left}
}

// mustHalt reports whether nothing kills the whole tree at once: then each process is halted before the first is
// killed, so that none can start another meanwhile.
func (s *supervisor) mustHalt() bool { return !tree.CanKillAll(s.scoped) && s.group == nil }

// linger lets what the command left behind finish by itself.
func (s *supervisor) linger(d time.Duration) {
	if d <= 0 {
		return
	}

	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.reaper.gone:
	case <-s.stop:
	case <-timer.C:
	}
}
