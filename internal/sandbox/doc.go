// Package sandbox confines commands: what they may write, whether they may use
// the network, and whom they may touch.
//
// New makes a confinement out of a policy and a place; Set puts it into a
// proc.Spec; Apply carries it out in the process that becomes the command, and
// what it does holds for that process and all its descendants, for good.
//
// On Linux four layers lie on top of each other:
//
//	mounts    a mount namespace in which everything is read-only except the
//	          writable roots, and in these the protected paths are read-only
//	          again. It also covers what Landlock cannot: mode, owner, times and
//	          attributes of files, and a protected path inside a writable one.
//	Landlock  no writing outside the writable roots and a few devices; no tracing
//	          and no looking into processes outside; no signals to them and no
//	          abstract sockets of theirs (since ABI 6).
//	rights    root keeps only those capabilities that concern files and ids.
//	seccomp   no sockets but local ones (without network access), and these
//	          connect only to what the command's own processes listen on (see
//	          socketServer); no mounting, no namespaces, no tracing, no io_uring,
//	          and nothing of another architecture.
//
// All of them come with no_new_privs, so set-uid programs give nothing. A PID
// namespace (Place.PIDNamespace) is not one of the layers, because not every
// system gives one: it hides other processes and ends the command's for certain.
//
// The modes:
//
//	read-only            reads everything, writes devices like /dev/null only
//	workspace-write      writes the working directory, the writable roots, /tmp
//	                     and $TMPDIR as well, but no .git in or above them and
//	                     not fermata's home; /dev/shm is private to the command
//	danger-full-access   no confinement
//
// What is protected is the .git that belongs to each root, where it really is (a
// worktree's .git is a file that leads elsewhere), under every name on the way to
// it: none of them can be moved aside. A root that the user listed and that is a
// .git or lies in one stays writable. Repositories further down in a root are not
// protected. A .git that does not exist cannot be forbidden without leaving a
// placeholder in the user's directory, which other programs take for a
// repository: Appeared tells afterwards instead.
//
// Where there is no mount namespace for us, Landlock alone must do. It can only
// add rights, so a root with something protected in it is opened entry by entry,
// and nothing new can be made at its top. Without Landlock or seccomp New fails
// with ErrUnable: a command is never run less confined than asked in silence.
// Notes says what a person should know.
//
// What a confined command still can do: read all that the user can read; write
// through hard links that exist already;
// leave set-uid files of its own user in a root; take locks on files it can
// read; change the priority and the processors of its user's other processes
// (not as root; threads of one program do that to each other, by number); use up
// memory, disk and processor.
//
// What honest commands notice: they cannot signal what another command left
// running, nor see it if they have a PID namespace (see Place); /dev/shm, System V
// IPC and the names in /dev/pts are their own; local sockets of other programs
// (containers, ssh-agent, the desktop, another command) cannot be reached, also
// with the network, there are no local datagram sockets, and both ends of a local
// connection see the shim as the process at the other end; nothing can be traced,
// so debuggers and leak checkers that do so fail; 32-bit programs are killed; moving files
// between roots may mean to copy them; and an ordinary user sees the files of
// others as those of the user nobody.
package sandbox
