//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "vmguest is the first program of a Linux virtual machine: lab/build.sh guest makes its disk")
	os.Exit(2)
}
