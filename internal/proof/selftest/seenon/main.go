// Command seenon writes the page of the systems on which swdt was seen to work, from the contributed
// reports of `swdt selftest` in a folder.
package main

import (
	"fmt"
	"os"

	"github.com/swdt-dev/swdt/internal/proof/selftest"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: seenon FOLDER PAGE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "seenon:", err)
		os.Exit(1)
	}
}

func run(folder, page string) error {
	all, err := selftest.ReadSeen(folder)
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(selftest.SeenPage(all)), 0o644)
}
