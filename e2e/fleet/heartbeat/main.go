// Heartbeat writes the time into a file again and again, so that it can be seen
// afterwards until when it ran: heartbeat FILE DURATION.
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	f, err := os.OpenFile(os.Args[1], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	d, err := time.ParseDuration(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for began, n := time.Now(), 0; time.Since(began) < d; n++ {
		fmt.Fprintln(f, time.Now().UnixNano())
		if n%20 == 0 {
			fmt.Println("beat", n)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
