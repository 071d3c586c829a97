// Command image makes container images for Windows out of single programs and
// serves them as a registry, as long as its stdin is open:
//
//	image burn=burn.exe pause=burn.exe,--cores,0
//
// prints the registry's address when the registry answers, and serves the images
// ADDRESS/burn:1 and ADDRESS/pause:1; NAME:TAG=PROGRAM chooses another tag. Each image has one uncompressed layer with the
// program; the image's entrypoint is the program with the arguments.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) == 0 {
		return errors.New("usage: image NAME[:TAG]=PROGRAM[,ARGUMENT…]…")
	}
	registry := newRegistry()
	for _, arg := range args {
		name, program, found := strings.Cut(arg, "=")
		if !found {
			return fmt.Errorf("%s: want NAME[:TAG]=PROGRAM", arg)
		}
		words := strings.Split(program, ",")
		content, err := os.ReadFile(words[0])
		if err != nil {
			return err
		}
		if err := registry.add(name, content, words[1:]); err != nil {
			return fmt.Errorf("make image %s: %w", name, err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: registry}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		_ = server.Shutdown(context.Background())
	}()
	fmt.Fprintln(stdout, listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
