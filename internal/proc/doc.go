// Package proc runs child commands and leaves nothing of them behind.
//
// Three processes take part in one command:
//
//	fermata ──control, status pipes──▶ shim ──▶ the command
//
// The shim is our own binary, started again (see ShimMain). It is a child
// subreaper, so every process that the command ever starts stays its
// descendant, however often it forks, and when the shim has no child left it
// has no descendant left. A command that nothing confines is started by the shim
// itself. For a confined one it starts a stage, which waits in its own session, applies
// the confinement to itself and then becomes the command by exec: so the
// confinement never touches the shim, which must stay able to kill.
//
// What is guaranteed on Linux:
//
//   - Nothing runs before Release. If fermata dies before it, or never calls
//     it, shim and stage leave without having run anything.
//   - When the command ends, is stopped, times out, or when fermata itself dies
//     (the control pipe is the lifeline: its end of file means "stop"), the
//     whole tree gets SIGTERM, and after a grace SIGKILL, again and again until
//     nothing is left. Daemons in their own session are part of the tree.
//   - If the command kills its own shim, its processes fall to fermata, which is
//     a subreaper too (see NewSpawner) and ends them in the same way.
//   - A command that halts its shim (SIGSTOP) gains nothing: the shim is ordered to
//     continue when it must act, also by the kernel when fermata dies.
//   - Wait returns within Spec.Bound of a stop.
//
// What is not: an ordinary user cannot end a process that gained other rights
// (sudo); such a process is reported by ErrSurvivors. If something kills shim
// and fermata in the same instant, or a command halts its shim again and again
// while fermata is killed, the rest is found by tree.Reclaim, with the limits
// named there. The command may signal its shim (it has the same user) unless the
// confinement forbids it; an ordinary user's command may not trace it. With
// Spec.PIDNamespace it can do none of this, and the kernel ends what a killed
// shim leaves.
//
// On other Unix systems there is no subreaper: see other.go for what remains.
//
// Which processes belong to a command, and how such a set is ended, is in
// package tree. Start reading at Spawner.Start, then Command.run (the owner of
// one command) and supervise (the shim).
package proc
