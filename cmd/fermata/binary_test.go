package main

import "sync/atomic"

// binaryDir is where the binary was built, if a test needed it.
var binaryDir atomic.Pointer[string]
