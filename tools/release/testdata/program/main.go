// Command program stands for swdt in the tests of releases. It links a module, as swdt does.
package main

import (
	"fmt"

	"aead.dev/minisign"
)

func main() { fmt.Println("a program", minisign.IsEncrypted(nil)) }
