// Package git is the one place that runs git for fermata itself.
//
// Git executes programs that a repository names: hooks, filters, text
// conversions, diff drivers, a file system monitor, programs to fetch with, and
// all of these once more in each submodule. What fermata runs is not confined,
// and whoever wrote the repository must not decide what that is. So git never
// sees the repository's configuration. It gets a git directory of our own, kept
// where commands cannot write, with a configuration of the few settings that say
// how to read files; the repository's objects, references and index are read
// from where they are. Nothing is written to the repository.
//
// Settings of the user and the system are left out as well, for programs that
// they name may look for others in the repository.
package git
