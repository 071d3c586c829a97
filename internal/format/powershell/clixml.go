package powershell

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
)

// marker begins the output that PowerShell writes to stderr when it assumes that
// another PowerShell reads it.
const marker = "#< CLIXML"

// documentStart begins every CLIXML document, and documentEnd ends it. Only the first document of
// an output has the marker before it.
const (
	documentStart = `<Objs Version="`
	documentEnd   = "</Objs>"
)

// maxDocument bounds the CLIXML that is buffered for decoding, in bytes; a longer
// document is written unchanged.
const maxDocument = 4 << 20

// Decoder copies text to a writer. It replaces each CLIXML document in the text by the error,
// warning, verbose and debug records of the document, and drops progress records. It writes text
// outside of a document at once, so that a running command's stderr can be followed.
type Decoder struct {
	w       io.Writer
	pending []byte // possibly the beginning of a marker, or an unfinished document
	inside  bool   // pending begins with a marker or a document
}

// NewDecoder returns a Decoder that writes plain text to w.
func NewDecoder(w io.Writer) *Decoder { return &Decoder{w: w} }

// Write decodes p and writes the result. It does not keep p.
func (d *Decoder) Write(p []byte) (int, error) {
	d.pending = append(d.pending, p...)
	for {
		progress, err := d.step()
		if err != nil {
			return 0, err
		}
		if !progress {
			return len(p), nil
		}
	}
}

// Close writes the buffered text; an incomplete document is written unchanged.
func (d *Decoder) Close() error { return d.flush(len(d.pending)) }

// step handles one piece of plain text or one document.
func (d *Decoder) step() (progress bool, err error) {
	if !d.inside {
		at := firstOf(d.pending, marker, documentStart)
		if at < 0 {
			keep := max(partial(d.pending, marker), partial(d.pending, documentStart))
			return false, d.flush(len(d.pending) - keep)
		}
		d.inside = true
		return true, d.flush(at)
	}
	end, ok := d.documentLength()
	if !ok {
		if len(d.pending) > maxDocument {
			d.inside = false
			return false, d.flush(len(d.pending))
		}
		return false, nil
	}
	document := bytes.TrimPrefix(d.pending[:end], []byte(marker))
	text, err := decodeDocument(document)
	if err != nil {
		text = string(d.pending[:end]) // a document that cannot be decoded is better printed unchanged than lost
	}
	if _, err := io.WriteString(d.w, text); err != nil {
		return false, err
	}
	d.pending = append(d.pending[:0], d.pending[end:]...)
	d.inside = false
	return true, nil
}

// documentLength returns the length of the document with its marker; false if the
// document is not complete yet.
func (d *Decoder) documentLength() (int, bool) {
	at := bytes.Index(d.pending, []byte(documentEnd))
	if at < 0 {
		return 0, false
	}
	return at + len(documentEnd), true
}

func (d *Decoder) flush(n int) error {
	if n == 0 {
		return nil
	}
	if _, err := d.w.Write(d.pending[:n]); err != nil {
		return err
	}
	d.pending = append(d.pending[:0], d.pending[n:]...)
	return nil
}

// firstOf returns the offset of the first of the tokens; -1 if none occurs.
func firstOf(p []byte, tokens ...string) int {
	first := -1
	for _, token := range tokens {
		if at := bytes.Index(p, []byte(token)); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// partial returns the length of the longest suffix of p that is a prefix of the token.
func partial(p []byte, token string) int {
	for n := min(len(token)-1, len(p)); n > 0; n-- {
		if bytes.HasSuffix(p, []byte(token[:n])) {
			return n
		}
	}
	return 0
}

// decodeDocument returns the text of a document's error, warning, verbose and debug records.
func decodeDocument(document []byte) (string, error) {
	var text strings.Builder
	decoder := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return text.String(), nil
		}
		if err != nil {
			return "", err
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "S" {
			continue
		}
		var content string
		if err := decoder.DecodeElement(&content, &start); err != nil {
			return "", err
		}
		switch stream(start) {
		case "error":
			text.WriteString(unescape(content))
		case "warning", "verbose", "debug":
			text.WriteString(strings.ToUpper(stream(start)) + ": " + strings.TrimRight(unescape(content), "\r\n") +
				"\r\n")
		}
	}
}

func stream(e xml.StartElement) string {
	for _, attribute := range e.Attr {
		if attribute.Name.Local == "S" {
			return strings.ToLower(attribute.Value)
		}
	}
	return ""
}

// unescape replaces _xHHHH_ by the UTF-16 unit that it encodes.
func unescape(s string) string {
	if !strings.Contains(s, "_x") {
		return s
	}
	var units []uint16
	for i := 0; i < len(s); {
		if unit, ok := escaped(s[i:]); ok {
			units = append(units, unit)
			i += len("_x0000_")
			continue
		}
		next := strings.Index(s[i+1:], "_x")
		if next < 0 {
			next = len(s) - i - 1
		}
		units = append(units, utf16.Encode([]rune(s[i:i+1+next]))...)
		i += 1 + next
	}
	return string(utf16.Decode(units))
}

func escaped(s string) (uint16, bool) {
	if len(s) < 7 || s[0] != '_' || s[1] != 'x' || s[6] != '_' {
		return 0, false
	}
	value, err := strconv.ParseUint(s[2:6], 16, 16)
	return uint16(value), err == nil
}
