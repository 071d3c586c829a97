// Command images makes the container images of a fleet as OCI image layouts, and pushes them. It needs no
// Docker.
//
//	images build -version V -commit HASH -time SECONDS -out FOLDER
//	images push LAYOUT REGISTRY/REPOSITORY:TAG
//
// build runs at the root of the repository, after `make images` has built the programs into bin/. All bytes
// that it writes depend on its inputs alone. It makes two layouts, each with one reference:
//
//   - swdt-controller: an index with an image for each processor of Linux.
//   - swdt-node: a plain image for Windows. No version of Windows is in it, so each version takes it.
//
// main.go reads the flags, build.go makes the layouts, windows.go the layer of a HostProcess image,
// hive.go its empty registry hives, and push.go pushes a layout.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/swdt-dev/swdt/tools/release/payload"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("no command: use build or push")
	}
	switch args[0] {
	case "build":
		return runBuild(args[1:], out)
	case "push":
		if len(args) != 3 {
			return errors.New("push needs the folder of a layout and REGISTRY/REPOSITORY:TAG")
		}
		return push(args[1], args[2], out)
	}
	return fmt.Errorf("there is no command %q: use build or push", args[0])
}

func runBuild(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	version := flags.String("version", "", "what `git describe` prints")
	commit := flags.String("commit", "", "the hash of the commit")
	seconds := flags.Int64("time", 0, "the commit's time, in seconds since 1970")
	folder := flags.String("out", "bin/images", "the folder that gets the layouts; older ones are replaced")
	repository := flags.String("repository", ".", "the folder with LICENSE")
	bin := flags.String("bin", "bin", "the folder with the programs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" || *seconds <= 0 {
		return errors.New("-version needs a text and -time a positive number")
	}
	m := maker{
		version: *version, commit: *commit, created: time.Unix(*seconds, 0).UTC(),
		source: payload.Source{Repository: *repository, Bin: *bin},
	}
	return m.layouts(*folder, out)
}
