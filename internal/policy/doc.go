// Package policy decides whether a call may run: confined, unconfined, after
// a client was asked, or not at all. It is pure: it reads no file, starts
// nothing, and its answer depends on its arguments only.
//
//	rules := policy.Rules{Approval: …, Mode: …, Confinable: …, Grants: …, Roots: …}
//	r := rules.Command(policy.CommandRequest{Argv: argv, Cwd: dir})
//	switch r.Verdict { … }
//	grants = grants.Answered(decision, argv, dir) // when a person has answered
//
// Start reading at the two tables in rules.go, one for commands and one for
// patches; the first row that fits decides.
//
// # Known to be safe
//
// [Safe] reports whether a command only looks: it is on a list of programs that
// neither write nor run anything else, with arguments that keep them so, or is a
// shell script made of nothing but such commands. The script is read as a syntax
// tree. Whatever the analysis does not know is unsafe, which costs a question at
// most.
//
// A safe command runs unasked, but not unconfined: where the mode confines and
// the machine can, so is a safe command. That costs nothing, and holds when the
// analysis is wrong. For the same reason a safe command does not get out of the
// sandbox by asking for it: then a client is asked, as for any other. Only where
// there is nothing to confine with does it run without, since the other choice
// would be to ask a person about every "ls". Git is the exception: it runs
// programs that the configuration of a repository names, so that without a
// sandbox a client is asked about it ([SafeUnconfined]).
//
// What is trusted besides: the user's own shell start-up files, PATH and
// configuration. [Harden] keeps git from running programs and fetching where that
// can be switched off, also inside the sandbox. "cargo check" is missing from the list on purpose: it compiles and
// runs the build scripts and macros of every dependency.
//
// # Yes, once and for all
//
// "Approved" is for one call, also when the question was whether to run it again
// without the sandbox. Only "approved for the session" is remembered, for the
// same arguments in the same directory; see [Grants].
package policy
