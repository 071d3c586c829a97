//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The colours of a screen, as escape sequences of Linux' console.
const (
	white = "\x1b[37;44m"
	black = "\x1b[37;40m"
)

// show replaces the screen by a title and a text, in a colour, without a cursor: a screen at which
// Windows waits does not change.
func (c *console) show(colour, title, text string) {
	tty, err := os.OpenFile("/dev/tty0", os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return // a guest without a screen
	}
	defer tty.Close()
	var out strings.Builder
	fmt.Fprintf(&out, "\x1b[?25l%s\x1b[2J\x1b[4;6H%s", colour, title)
	for i, line := range strings.Split(text, "\n") {
		fmt.Fprintf(&out, "\x1b[%d;6H%s", 7+i, line)
	}
	_, _ = io.WriteString(tty, out.String())
}

// idle blocks until the guest is switched off. It uses a timer, since Go ends a program whose
// goroutines all wait without a timer, and the end of init resets the guest.
func idle() {
	for range time.Tick(time.Hour) {
	}
}
