// Command wincat is the program of containers that streams are tested with. Windows images of pod
// sandboxes have a program of this name, which containerd runs to forward a port.
//
//	wincat ADDRESS PORT   connects to a TCP port, and copies stdin to it and its answer to stdout
//	wincat copy           copies stdin to stdout, and prints the number of bytes to stderr at the end
//	wincat echo           prints each line again, until the line "end"
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "copy":
		err = copyAll()
	case len(os.Args) == 2 && os.Args[1] == "echo":
		err = echo()
	case len(os.Args) == 3:
		err = connect(net.JoinHostPort(os.Args[1], os.Args[2]))
	default:
		fmt.Fprintln(os.Stderr, "usage: wincat ADDRESS PORT | copy | echo")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "wincat:", err)
		os.Exit(1)
	}
}

func copyAll() error {
	n, err := io.Copy(os.Stdout, os.Stdin)
	fmt.Fprintf(os.Stderr, "%d bytes\n", n)
	return err
}

func echo() error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if _, err := fmt.Println("echo:", lines.Text()); err != nil {
			return err
		}
		if lines.Text() == "end" {
			return nil
		}
	}
	return lines.Err()
}

func connect(address string) error {
	conn, err := net.DialTimeout("tcp", address, time.Minute)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(os.Stdout, conn)
	return err
}
