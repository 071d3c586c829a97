package diag

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/format/redact/document"
)

// folder stores one node's results until they are packed.
type folder struct {
	root     string // the folder of all nodes
	name     string // the name of this node's folder below root
	redactor *redact.Redactor

	mutex sync.Mutex
	taken map[string]bool // the taken paths in lower case, since some file systems ignore case
}

// longestName is the largest length in bytes of a file's or folder's name in a bundle.
const longestName = 100

// safeName returns a name that every system accepts and that cannot lead to another folder.
func safeName(text string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_.+ ()", r):
			return r
		}
		return '_'
	}, text)
	name = strings.Trim(name, " .")
	if name == "" {
		return "_"
	}
	return name[max(0, len(name)-longestName):]
}

// safePath returns the path in a bundle for a path on the node: C/k/x.log for C:\k\x.log.
func safePath(path string) string {
	var parts []string
	for part := range strings.SplitSeq(strings.ReplaceAll(strings.Replace(path, ":", "", 1), `\`, "/"), "/") {
		if part != "" {
			parts = append(parts, safeName(part))
		}
	}
	return strings.Join(parts, "/")
}

// create creates a file below the node's folder and returns its path in the bundle.
func (f *folder) create(path string) (*os.File, string, error) {
	path = f.name + "/" + path
	f.mutex.Lock()
	for base, n := path, 2; f.taken[strings.ToLower(path)]; n++ {
		path = fmt.Sprintf("%s (%d)", base, n)
	}
	f.taken[strings.ToLower(path)] = true
	f.mutex.Unlock()
	full := filepath.Join(f.root, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		return nil, "", err
	}
	file, err := os.OpenFile(full, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return file, path, err
}

// output is a file that a collector writes. Bytes beyond the limit are dropped.
type output struct {
	file   *os.File
	stream *redact.Stream   // nil: the file is not redacted
	whole  *redact.Redactor // nil: the file is not a document
	limit  int64
	kept   int64
	cut    bool // reports whether bytes were dropped
	// linesOnly reports whether the file has the name of a document, but was not redacted as
	// a document.
	linesOnly bool
}

func (f *folder) output(path string, limit int64) (*output, string, error) {
	file, path, err := f.create(path)
	if err != nil {
		return nil, "", fmt.Errorf("write the bundle: %w", err)
	}
	o := &output{file: file, stream: f.redactor.Stream(), limit: limit}
	if isDocument(path) {
		o.whole = f.redactor
	}
	return o, path, nil
}

// Write implements io.Writer.
func (o *output) Write(data []byte) (int, error) {
	fits := min(int64(len(data)), max(0, o.limit-o.kept))
	o.kept += fits
	o.cut = o.cut || fits < int64(len(data))
	if fits > 0 {
		clean := data[:fits]
		if o.stream != nil {
			clean = o.stream.Next(clean)
		}
		if _, err := o.file.Write(clean); err != nil {
			return 0, fmt.Errorf("write the bundle: %w", err)
		}
	}
	return len(data), nil
}

// Close writes the bytes that the redaction has held back, redacts a document as a whole, and
// closes the file.
func (o *output) Close() error {
	var err error
	if o.stream != nil {
		_, err = o.file.Write(o.stream.End())
	}
	if err == nil && o.stream != nil && o.whole != nil && o.kept > 0 {
		err = o.redactWhole()
	}
	return errors.Join(err, o.file.Close())
}

// isDocument reports whether a file has the extension of a document that swdt can parse.
func isDocument(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json", ".yaml", ".yml", ".toml", ".xml", ".conf", ".conflist", ".config":
		return true
	}
	return false
}

// redactWhole redacts secrets that only the structure of a document shows. A document that was cut
// or that cannot be parsed stays as it is, and linesOnly is set.
func (o *output) redactWhole() error {
	if o.linesOnly = true; o.cut {
		return nil
	}
	text, err := os.ReadFile(o.file.Name())
	if err != nil {
		return fmt.Errorf("redact the document: %w", err)
	}
	clean, parsed := document.Redact(o.whole, text)
	o.linesOnly = !parsed
	if bytes.Equal(clean, text) {
		return nil
	}
	if err := o.file.Truncate(0); err != nil {
		return fmt.Errorf("redact the document: %w", err)
	}
	if _, err := o.file.WriteAt(clean, 0); err != nil {
		return fmt.Errorf("redact the document: %w", err)
	}
	return nil
}

// table writes a table twice: the document as JSON, and the table as text.
func (f *folder) table(name string, document any, text func(io.Writer) error) error {
	form, _, err := f.output("tables/"+name+".json", largestTable)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(form)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := errors.Join(encoder.Encode(document), form.Close()); err != nil {
		return fmt.Errorf("write the table %s: %w", name, err)
	}
	plain, _, err := f.output("tables/"+name+".txt", largestTable)
	if err != nil {
		return err
	}
	if err := errors.Join(text(plain), plain.Close()); err != nil {
		return fmt.Errorf("write the table %s: %w", name, err)
	}
	return nil
}

// largestTable is the largest size of a table in bytes.
const largestTable = 64 << 20
