// Command image makes container images for Windows out of single programs and
// serves them as a registry, as long as its stdin is open:
//
//	image burn=burn.exe pause=burn.exe,--cores,0
//
// prints the registry's address when the registry answers, and serves the images
// ADDRESS/burn:1 and ADDRESS/pause:1; NAME:TAG=PROGRAM chooses another tag. Each image has one
// uncompressed layer with the program; the image's entrypoint is the program with the arguments.
// NAME=PROGRAM;Windows/System32/x.exe=FILE adds a file at this place on drive C: of the image.
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
		return errors.New("usage: image NAME[:TAG]=PROGRAM[,ARGUMENT…][;PLACE=FILE…]…")
	}
	registry := newRegistry()
	for _, arg := range args {
		name, program, found := strings.Cut(arg, "=")
		if !found {
			return fmt.Errorf("%s: want NAME[:TAG]=PROGRAM", arg)
		}
		program, more, _ := strings.Cut(program, ";")
		words := strings.Split(program, ",")
		files, err := filesOf(words[0], more)
		if err != nil {
			return err
		}
		if err := registry.add(name, files, words[1:]); err != nil {
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

// filesOf reads the program of an image and its other files, PLACE=FILE, which semicolons separate.
func filesOf(path, more string) (files []file, err error) {
	named := program + "=" + path
	if more != "" {
		named += ";" + more
	}
	for pair := range strings.SplitSeq(named, ";") {
		place, path, found := strings.Cut(pair, "=")
		if !found {
			return nil, fmt.Errorf("%s: want PLACE=FILE", pair)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, file{place, content})
	}
	return files, nil
}
