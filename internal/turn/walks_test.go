//go:build !race

package turn

// defaultWalks takes a few seconds.
const defaultWalks = 20000
