package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/format/redact/document"
)

// factsFile is the file that `swdt doctor --save-facts` writes, for one node or several.
type factsFile struct {
	Nodes []Facts `json:"nodes"`
}

// ReadFacts reads a file that SaveFacts wrote.
func ReadFacts(path string) ([]Facts, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file factsFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: this is no file of swdt doctor --save-facts: %w", path, err)
	}
	if len(file.Nodes) == 0 {
		return nil, errors.New(path + ": there is no node in it")
	}
	for _, facts := range file.Nodes {
		if err := facts.CheckForm(path); err != nil {
			return nil, err
		}
	}
	return file.Nodes, nil
}

// CheckForm returns an error if another version of swdt wrote the facts, which were read from a file.
func (f *Facts) CheckForm(path string) error {
	if f.Form == Form {
		return nil
	}
	return fmt.Errorf("%s: its facts have form %d, and this swdt knows form %d: use the swdt that wrote it", path, f.Form, Form)
}

// SaveFacts writes the facts of one or more nodes into a file. It redacts secrets, since the
// command lines of services and the messages of events may contain secrets.
func SaveFacts(path string, all []Facts) error {
	redactor, err := redact.New(nil)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(factsFile{Nodes: all}, "", "  ")
	if err == nil {
		clean, _ := document.Redact(redactor, text)
		err = os.WriteFile(path, append(clean, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("save the facts: %w", err)
	}
	return nil
}
