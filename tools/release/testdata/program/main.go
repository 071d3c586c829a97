// Command program stands for swdt in the tests of releases.
package main

import "fmt"

func main() { fmt.Println("a program") }
