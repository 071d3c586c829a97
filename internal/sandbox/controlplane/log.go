package controlplane

import (
	"errors"
	"io"
	"os"
	"strings"
)

// lastWords is the number of lines of a log that an error contains.
const lastWords = 10

// lastLines returns the last lines of a file, or the reason why it cannot be read.
func lastLines(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	const tail = 8 << 10
	if _, err := file.Seek(-tail, io.SeekEnd); err != nil {
		// The file is shorter than tail: read it from its start.
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err.Error()
		}
	}
	data, err := io.ReadAll(file)
	if err != nil && !errors.Is(err, io.EOF) {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-lastWords):], "\n")
}
