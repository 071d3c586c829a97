//go:build windows

// Command powershell stands in for PowerShell on a node that has none, as far as swdt sends its agent with
// it: it writes as many bytes of its stdin to a new file as the script says, and prints their SHA-256.
package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"unicode/utf16"
)

func main() {
	if err := receive(); err != nil {
		fmt.Fprintln(os.Stderr, "powershell stand-in:", err)
		os.Exit(1)
	}
}

func receive() error {
	raw, err := base64.StdEncoding.DecodeString(os.Args[len(os.Args)-1])
	if err != nil {
		return err
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	head := regexp.MustCompile(`^\$path = '([^']+)'; \$left = (\d+)\n`).FindStringSubmatch(string(utf16.Decode(units)))
	if head == nil {
		return fmt.Errorf("it runs one script only, not %q", string(utf16.Decode(units)))
	}
	size, err := strconv.ParseInt(head[2], 10, 64)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(head[1], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.CopyN(io.MultiWriter(file, hash), os.Stdin, size)
	if errors.Is(err, io.EOF) {
		os.Exit(86) // as the script does; the file is closed with the process
	}
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	fmt.Printf("%X\r\n", hash.Sum(nil))
	return nil
}
