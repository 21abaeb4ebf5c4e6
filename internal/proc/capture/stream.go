// Package capture keeps the output of a command in bounded memory.
package capture

// Stream names where output came from.
type Stream uint8

// The streams of a command. In a pseudo-terminal everything is Stdout.
const (
	Stdout Stream = iota
	Stderr
)

// String returns "stdout" or "stderr".
func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}
