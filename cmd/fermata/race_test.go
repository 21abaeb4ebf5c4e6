//go:build race

package main

// raceDetector says that the race detector is built in. Every process then
// sleeps for a second before it ends, and a command has three.
const raceDetector = true
