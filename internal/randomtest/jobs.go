package randomtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/tool"
	p "github.com/fermata-agent/fermata/protocol"
)

// A randomJob is a background command of a world. Some cannot be stopped.
type randomJob struct {
	w        *world
	call     p.CallID
	immortal bool
	write    chan func(p.DeltaKind, string) // gives one when it is kept, and is closed
	once     sync.Once
	stop     chan struct{} // closed when somebody stops it
	done     chan struct{} // closed when it is dead
	printed  string        // final then
	cut      bool          // it was stopped; final then
}

// keep lets a call leave a background command behind.
func (w *world) keep(call tool.Call, printed string) tool.Result {
	j := &randomJob{
		w: w, call: call.ID, immortal: w.rnd(6) == 0,
		write: make(chan func(p.DeltaKind, string), 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go j.live() // ends by itself, with Stop, or if it is not kept
	defer close(j.write)
	w.finish(call.ID) // what runs is the job; the call only waits for the disk
	id, write, err := call.Host.Keep(context.Background(), p.BackgroundStarted{Command: []string{"serve"}}, j)
	if err != nil {
		return tool.Result{Output: p.ToolOutput{Output: printed, Failed: true, Command: &p.CommandResult{Output: printed}}}
	}
	w.mu.Lock()
	if w.jobs[id] != nil {
		w.t.Errorf("two background commands with the number %d", id)
	}
	w.jobs[id] = j
	w.mu.Unlock()
	j.write <- write
	return tool.Result{Output: p.ToolOutput{Output: "running", Command: &p.CommandResult{Output: printed, Background: id}}}
}

func (j *randomJob) live() {
	defer close(j.done)
	stop := j.stop
	if j.immortal {
		stop = nil
	}
	var write func(p.DeltaKind, string)
	select { // it runs before it is kept, and prints nothing
	case write = <-j.write:
		if write == nil {
			return // it is not kept: its call ends it
		}
	case <-stop:
		j.cut = true
		return
	}
	for k := range j.w.rnd(30) {
		piece := fmt.Sprintf("job %d\n", k)
		j.printed += piece
		write(p.DeltaStdout, piece)
		select {
		case <-time.After(time.Duration(j.w.rnd(100)) * time.Millisecond):
		case <-stop:
			<-time.After(time.Duration(j.w.rnd(30)) * time.Millisecond) // slow to die
			j.cut = true
			return
		}
	}
	if j.immortal {
		<-time.After(10 * time.Second)
		j.printed += "at last"
		write(p.DeltaStdout, "at last")
	}
}

func (j *randomJob) Stop(error) { j.once.Do(func() { close(j.stop) }) }

func (j *randomJob) Wait() (p.CommandResult, bool) {
	<-j.done
	return p.CommandResult{Output: j.printed, Killed: 1}, j.cut
}

func (j *randomJob) dead() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

func (j *randomJob) wasStopped() bool {
	select {
	case <-j.stop:
		return true
	default:
		return false
	}
}

// ended checks, when the end of a background command can be seen, that it is
// dead, and that it ended as reported.
func (w *world) ended(b *p.BackgroundEnded) {
	w.mu.Lock()
	j := w.jobs[b.ID]
	w.mu.Unlock()
	if j == nil || b.Reason == p.Crashed {
		return // its call heard that it was not kept; or the machine was off
	}
	if !j.dead() && (!j.immortal || !j.wasStopped()) {
		w.t.Errorf("background command %d ended %s, and runs", b.ID, b.Reason)
	}
	if j.dead() && b.Reason == p.Interrupted && !j.wasStopped() {
		w.t.Errorf("background command %d was interrupted by nobody", b.ID)
	}
}

// stopped checks, when the end of a turn can be seen that was stopped, that its
// background commands are dead or were given up.
func (w *world) stopped(turn p.TurnID, end *p.TurnEnded) {
	if end.Reason == p.Completed || end.Reason == p.Failed { // they go on
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, j := range w.jobs {
		if j.call.Turn == turn && !j.dead() && !j.immortal {
			w.t.Errorf("turn %d ended %s while background command %d ran", turn, end.Reason, id)
		}
	}
}

// noJobs checks that only what cannot be stopped runs, and was asked to stop.
func (w *world) noJobs() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, j := range w.jobs {
		if !j.dead() && (!j.immortal || !j.wasStopped()) {
			w.t.Errorf("the engine is shut down, and background command %d runs", id)
		}
	}
}

// knownJobs checks that none ran that the journal does not know.
func (w *world) knownJobs(all []p.Event) {
	known := map[p.BackgroundID]bool{}
	for _, e := range all {
		if b, ok := e.Body.(*p.BackgroundStarted); ok {
			known[b.ID] = true
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.jobs {
		if !known[id] {
			w.t.Errorf("background command %d ran, and the journal does not know it", id)
		}
	}
}
