package main

import (
	"syscall"
	"testing"

	p "github.com/fermata-agent/fermata/protocol"
)

// Two terminals on one conversation: both show what happens, either types, either
// interrupts, and an approval that is answered in one is gone in the other.
func TestTwoScreens(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	one := newScreen(t, pl, pl.demo("-a", "untrusted", "'wait 600'"))
	one.sees("working")
	two := one.window(pl.bin + " resume " + pl.conversation() + "; echo exit code $?; exec sleep 600")
	two.sees("› wait 600", "working")
	two.keys("Escape")
	one.sees("interrupted after", "ready")
	two.sees("interrupted after", "ready")

	two.types("talk 5", "Enter")
	one.sees("› talk 5", "word5", "ready")
	two.sees("word5", "ready")
	two.golden("join_second")
	one.golden("join_first")

	one.types("run: touch made", "Enter")
	one.sees("Allow this command?")
	two.sees("Allow this command?", "touch made")
	two.answer("y")
	one.gone("Allow this command?")
	one.sees("ready")
	two.sees("ready")
}

// The terminal that runs the turn is killed: the other one says so and goes on.
func TestOtherScreenTakesOver(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	one := newScreen(t, pl, pl.demo("'run: echo begun; exec sleep 600'"))
	one.sees("  begun")
	two := one.window(pl.bin + " resume " + pl.conversation() + "; echo exit code $?; exec sleep 600")
	two.sees("  begun", "working")
	one.signal(syscall.SIGKILL)
	two.sees("crashed", "ended unexpectedly", "this terminal has taken over", "ready")
	two.types("talk 5", "Enter")
	two.sees("word5", "ready")
	two.golden("join_taken_over")
	pl.fsck(pl.conversation())
}

// Whoever quits while a turn runs is asked; the turn is stopped only if that is said.
func TestScreenQuitAsks(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	one := newScreen(t, pl, pl.demo("'run: echo begun; exec sleep 600'"))
	one.sees("  begun", "working")
	one.types("/quit", "Enter")
	one.sees("Turn 1 is running", "stop it, and quit")
	one.answer("n")
	one.gone("stop it, and quit")
	one.drafts("a thought")
	two := one.window(pl.bin + " resume " + pl.conversation() + "; echo exit code $?; exec sleep 600")
	two.sees("  begun", "working")
	two.types("/quit", "Enter") // the draft of the other terminal is not in front of it
	two.sees("quit only this terminal")
	two.answer("q")
	two.sees("turn 1 continues in another process", "exit code 0")
	one.sees("working", "› a thought")
	one.keys("C-e", "C-u")
	one.types("/quit", "Enter")
	one.sees("stop it, and quit")
	one.answer("s")
	one.sees("interrupted after", "exit code 0")
}

// A terminal is left while its detached turn runs, and another one comes back to it.
func TestScreenDetaches(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	open := pl.fifo("fifo")
	one := newScreen(t, pl, pl.demo("--detach", "'run: echo begun; cat fifo; echo over'"))
	pl.stopServe() // before it is looked for what is left
	one.sees("  begun", "working")
	one.types("/quit", "Enter")
	one.sees("leave it running")
	one.golden("detach_quit")
	one.answer("l")
	one.sees("turn 1 continues in another process", "exit code 0")
	two := one.window(pl.bin + " attach; echo exit code $?; exec sleep 600")
	two.sees("  begun", "working")
	open()
	two.sees("  over", "ready")
	two.golden("detach_attached")
}

// The terminal is closed while its detached turn runs.
func TestScreenHangsUpDetached(t *testing.T) {
	t.Parallel()
	pl := screenPlace(t)
	open := pl.fifo("fifo")
	one := newScreen(t, pl, pl.demo("--detach", "'run: echo begun; cat fifo; echo over'"))
	pl.stopServe() // before it is looked for what is left
	one.sees("  begun", "working")
	one.signal(syscall.SIGHUP)
	one.sees("turn 1 continues in another process", "exit code 129")
	open()
	pl.awaitEvent(pl.conversation(), "the turn completes", func(b p.Body) bool {
		end, ok := b.(*p.TurnEnded)
		return ok && end.Reason == p.Completed
	})
}
