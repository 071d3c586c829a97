// Command pack compresses swdt-agent.exe into the file that swdt embeds, and so do swdt-probe's builds.
//
//	go run ./internal/node/agentbin/pack bin/swdt-agent.exe internal/node/agentbin/swdt-agent.exe.zst
//
// If the output already holds that program, pack does not write it again, so that Go's build cache
// stays valid.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pack PROGRAM PROGRAM.zst")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(executable, packed string) error {
	data, err := os.ReadFile(executable)
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	if !bytes.HasPrefix(data, []byte("MZ")) && !bytes.HasPrefix(data, []byte("\x7fELF")) {
		return fmt.Errorf("%s is no executable for Windows or Linux", executable)
	}
	old, err := os.ReadFile(packed)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the last result: %w", err)
	}
	if was, err := agentbin.Unpack(old); err == nil && was.Hash == agentbin.FromBytes(data).Hash {
		return nil
	}
	compressed, err := agentbin.Pack(data)
	if err != nil {
		return err
	}
	// Replace exchanges the whole file at once, so that a concurrent build never embeds half of it.
	// Chmod lets other users of the checkout read it.
	if err := errors.Join(localfile.Replace(packed, compressed), os.Chmod(packed, 0o644)); err != nil {
		return fmt.Errorf("write the packed program: %w", err)
	}
	return nil
}
