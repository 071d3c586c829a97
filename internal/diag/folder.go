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

	"github.com/swdt-dev/swdt/internal/redact"
	"github.com/swdt-dev/swdt/internal/redact/document"
)

// folder is where one node's results are written until they are packed.
type folder struct {
	root     string // of all nodes
	name     string // of this one, below root
	redactor *redact.Redactor

	mutex sync.Mutex
	taken map[string]bool // in lower case: some disks do not tell them apart
}

// longestName of a file or folder in a bundle, bytes.
const longestName = 100

// safeName is a name that every system takes and that leads nowhere.
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

// safePath is a path of the node's as one in a bundle: C:\k\x.log is C/k/x.log.
func safePath(path string) string {
	var parts []string
	for part := range strings.SplitSeq(strings.ReplaceAll(strings.Replace(path, ":", "", 1), `\`, "/"), "/") {
		if part != "" {
			parts = append(parts, safeName(part))
		}
	}
	return strings.Join(parts, "/")
}

// create makes a file below the node's folder and gives its path in the bundle.
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

// output is a file that a collector writes. What is beyond the limit is not kept.
type output struct {
	file   *os.File
	stream *redact.Stream   // nil: it is kept as it is
	whole  *redact.Redactor // it is a document, which is redacted once more as one; nil: it is none
	limit  int64
	kept   int64
	cut    bool // there was more
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

// Close ends the file.
func (o *output) Close() error {
	var err error
	if o.stream != nil {
		_, err = o.file.Write(o.stream.End())
	}
	if err == nil && o.stream != nil && o.whole != nil && !o.cut {
		err = o.redactWhole()
	}
	return errors.Join(err, o.file.Close())
}

// isDocument reports whether a file is one that swdt can parse.
func isDocument(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json", ".yaml", ".yml", ".toml", ".xml", ".conf", ".conflist", ".config":
		return true
	}
	return false
}

// redactWhole takes from a document what only its structure shows to be secret.
func (o *output) redactWhole() error {
	if o.kept > document.Largest {
		return nil
	}
	text, err := os.ReadFile(o.file.Name())
	if err != nil {
		return fmt.Errorf("redact the document: %w", err)
	}
	clean := document.Redact(o.whole, text)
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

// table writes a table twice: as the document and as people read it.
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

// largestTable is how large a table may be, bytes.
const largestTable = 64 << 20
