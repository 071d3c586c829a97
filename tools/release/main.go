// Command release makes the files of a release of swdt, verifies and inspects them.
//
//	release build -version V -commit HASH -time SECONDS [-changed] -out FOLDER
//	release verify [-key KEY] FOLDER
//	release inspect FOLDER
//
// Verify compares all files with the list of their hashes, as users do. Inspect looks into them, as makers do.
//
// It runs at the root of the repository and compiles nothing: `make release` has put swdt for each
// target, the manual pages and the completions into bin/. It publishes nothing. All bytes that it writes
// depend on its inputs alone, so two releases of one commit by one version of Go are equal.
//
// main.go reads the flags, build.go lists what a release has, and a package beside it makes each kind of
// file.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/tools/release/checksum"
	"github.com/swdt-dev/swdt/tools/release/inspect"
	"github.com/swdt-dev/swdt/tools/release/payload"
	"github.com/swdt-dev/swdt/tools/release/signature"
	"github.com/swdt-dev/swdt/tools/release/version"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("no command: use build, verify or inspect")
	}
	switch args[0] {
	case "build":
		return runBuild(args[1:], out)
	case "verify":
		return runVerify(args[1:], out)
	case "inspect":
		return runInspect(args[1:], out)
	}
	return fmt.Errorf("there is no command %q: use build, verify or inspect", args[0])
}

func runBuild(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	described := flags.String("version", "", "what `git describe` prints")
	commit := flags.String("commit", "", "the whole hash of the commit")
	seconds := flags.Int64("time", 0, "the commit's time, in seconds since 1970")
	changed := flags.Bool("changed", false, "files differ from the commit, as `git status` lists them")
	folder := flags.String("out", "dist", "the folder to make; an older one is replaced")
	repository := flags.String("repository", ".", "the folder with LICENSE and CHANGELOG.md")
	bin := flags.String("bin", "bin", "the folder with programs/, share/, probes/ and swdt-agent.exe")
	if err := flags.Parse(args); err != nil {
		return err
	}
	v, err := version.Parse(*described)
	if err != nil {
		return err
	}
	if len(*commit) != 40 || *seconds <= 0 {
		return errors.New("-commit needs 40 digits and -time a positive number")
	}
	key, err := signature.FromEnvironment(os.Getenv)
	if err != nil {
		return err
	}
	r := &release{
		described: *described, version: v, commit: *commit, time: time.Unix(*seconds, 0).UTC(), key: key, out: out,
		changed: *changed || strings.HasSuffix(*described, "-dirty"),
		source:  payload.Source{Repository: *repository, Bin: *bin},
	}
	return r.replace(*folder)
}

func runVerify(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	public := flags.String("key", "", "the public key, which must have signed the list of files")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("verify needs the folder of a release")
	}
	if err := verify(flags.Arg(0), *public); err != nil {
		return fmt.Errorf("verify %s: %w", flags.Arg(0), err)
	}
	signer := "no signature was checked: -key names the public key"
	if *public != "" {
		signer = "the list is signed by " + *public
	}
	_, err := fmt.Fprintf(out, "all files are as %s lists them; %s\n", checksum.File, signer)
	return err
}

// verify checks the signature of the list first, so that the list can be trusted; public may be empty.
func verify(folder, public string) error {
	if public != "" {
		list, err := os.ReadFile(filepath.Join(folder, checksum.File))
		if err != nil {
			return err
		}
		signed, err := os.ReadFile(filepath.Join(folder, checksum.File+signature.Extension))
		if err != nil {
			return err
		}
		if err := signature.Verify(public, list, signed); err != nil {
			return err
		}
	}
	return checksum.Verify(folder)
}

func runInspect(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("inspect needs the folder of a release")
	}
	if err := inspect.Folder(args[0]); err != nil {
		return fmt.Errorf("inspect %s:\n%w", args[0], err)
	}
	_, err := fmt.Fprintln(out, "archives, licences, the list of modules and the manifests fit together")
	return err
}
