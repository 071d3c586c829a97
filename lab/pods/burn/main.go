// Command burn uses a given number of processor cores until it is killed. The lab's
// containers run it; with --cores 0, it is the process of a pod sandbox.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// period is the length of an interval. In each interval, burn is busy for its share of a core. The
// period is short, so that a rate over a second is steady, but not so short that the clock's ticks
// matter.
const period = 50 * time.Millisecond

func main() {
	cores := flag.Float64("cores", 1, "how much of the processor to use")
	flag.Parse()
	if *cores < 0 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: burn [--cores NUMBER]")
		os.Exit(2)
	}
	fmt.Printf("burning %g cores\n", *cores)
	for rest := *cores; rest > 0; rest-- {
		go burn(min(rest, 1))
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt)
	<-end
}

// burn keeps one core busy for a share of every period.
func burn(share float64) {
	busy := time.Duration(share * float64(period))
	for begun := time.Now(); ; begun = begun.Add(period) {
		for time.Since(begun) < busy {
		}
		if late := time.Since(begun) - period; late > 0 {
			begun = begun.Add(late) // another process had the processor; do not make up for that time
		}
		time.Sleep(time.Until(begun.Add(period)))
	}
}
