// Package tree finds the processes that belong to a command, and ends them.
//
// A command's processes are found in three ways: as descendants of the shim
// that supervises it (Below), as orphans that fell to fermata because the shim
// was killed (EndOrphans), and, after a crash of fermata, from the Identity that
// was recorded before the command ran (Reclaim, End). Ladder ends such a set:
// SIGTERM, a grace, then SIGKILL until nothing is left.
//
// A process is named by its number and its start time together, because the
// kernel uses numbers again; Signal checks both. Start reading at Ladder.Run.
//
// Systems other than Linux have no /proc: there the command's process group is
// its tree, and Reclaim and End do nothing.
package tree
