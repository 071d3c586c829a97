package diag

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/htmlpage"
)

//go:embed page.html
var page string

// dataMark is the placeholder of the data in page.html.
const dataMark = "{{data}}"

// scrollMark is the placeholder of the style of boxes that scroll.
const scrollMark = "{{scroll}}"

const (
	// The page has the end of each log, up to pageLog bytes, and the beginning of each
	// table, up to pageTable bytes. The files beside the page are complete.
	pageLog   = 96 << 10
	pageTable = 256 << 10
	// pageNode and pageAll bound the total bytes of logs and tables in the page, for one
	// node and for all nodes.
	pageNode = 2 << 20
	pageAll  = 48 << 20
)

// pageText is a table or a log in the page.
type pageText struct {
	Node int    `json:"node"` // the node's index in the manifest
	Name string `json:"name"`
	Log  bool   `json:"log,omitempty"`
	Path string `json:"path"`
	Cut  bool   `json:"cut,omitempty"`
	Text string `json:"text"`
}

// writePage writes a self-contained page, which loads nothing. It writes the data of each file as
// soon as it has read the file, since the data of many nodes would need too much memory.
func writePage(file, root string, m Manifest) (err error) {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	before, after, ok := strings.Cut(strings.Replace(page, scrollMark, htmlpage.Scroll(), 1), dataMark)
	if !ok {
		return fmt.Errorf("the page has no %s", dataMark)
	}
	w := bufio.NewWriter(out)
	w.WriteString(before) // Flush returns the error
	w.WriteString(`{"manifest":`)
	if err := writeJSON(w, m); err != nil {
		return err
	}
	w.WriteString(`,"texts":[`)
	if err := writeTexts(w, root, m); err != nil {
		return err
	}
	w.WriteString(`]}` + after)
	return w.Flush()
}

func writeTexts(w *bufio.Writer, root string, m Manifest) error {
	all, begun := int64(pageAll), false
	for i, n := range m.Nodes {
		left := min(all, pageNode)
		add := func(t pageText, most int64) error {
			text, err := readPart(filepath.Join(root, filepath.FromSlash(t.Path)), min(most, left), t.Log)
			if err != nil || left <= 0 {
				return err
			}
			t.Node, t.Text, t.Cut = i, text.text, text.cut
			left, all = left-int64(len(t.Text)), all-int64(len(t.Text))
			if begun {
				w.WriteByte(',')
			}
			begun = true
			return writeJSON(w, t)
		}
		for _, c := range n.Collectors {
			for _, name := range c.Tables {
				if err := add(pageText{Name: name, Path: n.table(name, "txt")}, pageTable); err != nil {
					return err
				}
			}
			for _, f := range c.Files {
				if !f.Log {
					continue
				}
				if err := add(pageText{Name: f.From, Log: true, Path: f.Path}, pageLog); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// writeJSON writes a value as JSON that is safe in a script element.
func writeJSON(w io.Writer, value any) error {
	text, err := json.Marshal(value) // Marshal escapes < and &
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

type part struct {
	text string
	cut  bool
}

// readPart reads a file. If the file is larger than the given number of bytes, readPart returns
// only whole lines that fit: the last lines if end is true, else the first lines.
func readPart(file string, most int64, end bool) (p part, err error) {
	f, err := os.Open(file)
	if err != nil {
		return p, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return p, err
	}
	p.cut = info.Size() > most
	if p.cut && end {
		if _, err := f.Seek(info.Size()-most, io.SeekStart); err != nil {
			return p, err
		}
	}
	content, err := io.ReadAll(io.LimitReader(f, most))
	p.text = strings.ReplaceAll(strings.ToValidUTF8(string(content), "�"), "\x00", "")
	if p.cut && end {
		_, p.text, _ = strings.Cut(p.text, "\n")
	} else if p.cut {
		p.text = p.text[:strings.LastIndex(p.text, "\n")+1]
	}
	return p, err
}
