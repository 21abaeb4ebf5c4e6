//go:build race

package turn

// defaultWalks is smaller here: the walks are slower, and have no goroutines.
const defaultWalks = 2000
