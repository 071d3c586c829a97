// Package powershellexe stands in for PowerShell on a node that has none. It runs the script with which swdt sends
// its agent. Of a user's script that ends with "exit N" it prints the text and then its stdin, and ends with N.
package powershellexe

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"

	"github.com/swdt-dev/swdt/internal/format/powershell"
	"github.com/swdt-dev/swdt/internal/node/viapod/receiver"
)

// Streams are those of the program.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs the program with the arguments after its name, and returns its exit code.
func Main(args []string, s Streams) (code int) {
	code, err := s.run(append([]string{powershell.Program}, args...))
	if err != nil {
		fmt.Fprintln(s.Err, "powershell stand-in:", err)
		return 1
	}
	return code
}

func (s Streams) run(command []string) (code int, err error) {
	if path, size, ok := receiver.Received(command); ok {
		return s.receive(path, size)
	}
	script, err := powershell.Decode(command[len(command)-1])
	if err != nil {
		return 0, err
	}
	end := regexp.MustCompile(`\bexit (\d+)'\n`).FindStringSubmatch(script) // the user's script is quoted in swdt's
	if end == nil {
		return 0, fmt.Errorf("it does not run %q", script)
	}
	fmt.Fprintln(s.Out, script)
	if _, err := io.Copy(s.Out, s.In); err != nil {
		return 0, err
	}
	return strconv.Atoi(end[1])
}

func (s Streams) receive(path string, size int64) (code int, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	hash := sha256.New()
	_, err = io.CopyN(io.MultiWriter(file, hash), s.In, size)
	if errors.Is(err, io.EOF) {
		return receiver.EndedEarly, file.Close()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return 0, err
	}
	fmt.Fprintf(s.Out, "%X\r\n", hash.Sum(nil))
	return 0, nil
}
