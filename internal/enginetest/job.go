package enginetest

import (
	"context"
	"encoding/json"
	"sync"

	p "github.com/fermata-agent/fermata/protocol"
)

// A Job is a background command that the test plays.
type Job struct {
	ID p.BackgroundID

	deaf    bool
	write   func(p.DeltaKind, string)
	printed string
	once    sync.Once
	stopped chan struct{} // closed when somebody stops it
	cause   error         // why; set before stopped is closed
	ends    sync.Once
	end     chan jobEnd // has room for one
}

type jobEnd struct {
	result  p.CommandResult
	stopped bool
}

// Job returns a command that can be kept. It ends with the test.
func (e *Engine) Job() *Job {
	j := &Job{stopped: make(chan struct{}), end: make(chan jobEnd, 1)}
	e.t.Cleanup(func() { j.Exit(0) })
	return j
}

// DeafJob returns one that cannot be stopped.
func (e *Engine) DeafJob() *Job {
	j := e.Job()
	j.deaf = true
	return j
}

// Keep makes the job the background command of the call. The run goes on.
func (r *Run) Keep(j *Job, process string) error {
	b := p.BackgroundStarted{Command: []string{"serve", process}, Cwd: "/w", Process: json.RawMessage(process)}
	id, write, err := r.Call.Host.Keep(context.WithoutCancel(r.Ctx), b, j)
	if err != nil {
		return err
	}
	j.ID, j.write = id, write
	return nil
}

// Print writes output as it arrives.
func (j *Job) Print(text string) {
	j.printed += text
	j.write(p.DeltaStdout, text)
}

// Exit ends the job by itself.
func (j *Job) Exit(code int) {
	j.finish(jobEnd{result: p.CommandResult{ExitCode: code, Output: j.printed}})
}

// Return ends the job by itself, with a whole result.
func (j *Job) Return(r p.CommandResult) { j.finish(jobEnd{result: r}) }

func (j *Job) finish(e jobEnd) { j.ends.Do(func() { j.end <- e }) }

// Stop stops the job, unless it is deaf.
func (j *Job) Stop(cause error) {
	j.once.Do(func() {
		j.cause = cause
		close(j.stopped)
		if !j.deaf {
			j.finish(jobEnd{p.CommandResult{ExitCode: -1, Signal: "SIGTERM", Output: j.printed, Killed: 2}, true})
		}
	})
}

// Wait returns how it ended.
func (j *Job) Wait() (p.CommandResult, bool) {
	e := <-j.end
	return e.result, e.stopped
}

// Stopped waits until somebody stops the job, and returns why.
func (j *Job) Stopped() error {
	<-j.stopped
	return j.cause
}

// Runs reports whether nobody has stopped it.
func (j *Job) Runs() bool {
	select {
	case <-j.stopped:
		return false
	default:
		return true
	}
}
