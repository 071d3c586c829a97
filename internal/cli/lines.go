package cli

import (
	"bytes"
	"io"
	"sync"
)

// lineWriter is a stream that several nodes write to, line by line.
type lineWriter struct {
	mutex sync.Mutex
	w     io.Writer
}

func newLineWriter(w io.Writer) *lineWriter { return &lineWriter{w: w} }

// maxLine is how much of a line without an end is held back, bytes.
const maxLine = 64 << 10

// prefixed is one node's share: its lines are written whole, after the prefix.
func (l *lineWriter) prefixed(prefix string) io.WriteCloser {
	return &prefixWriter{to: l, prefix: prefix}
}

type prefixWriter struct {
	to      *lineWriter
	prefix  string
	pending []byte
}

func (p *prefixWriter) Write(data []byte) (int, error) {
	p.pending = append(p.pending, data...)
	end := bytes.LastIndexByte(p.pending, '\n') + 1
	if end == 0 && len(p.pending) < maxLine {
		return len(data), nil
	}
	if end == 0 {
		end = len(p.pending)
	}
	if err := p.emit(p.pending[:end]); err != nil {
		return 0, err
	}
	p.pending = append(p.pending[:0], p.pending[end:]...)
	return len(data), nil
}

// Close writes a last line that had no end.
func (p *prefixWriter) Close() error {
	if len(p.pending) == 0 {
		return nil
	}
	last := p.pending
	p.pending = nil
	return p.emit(last)
}

func (p *prefixWriter) emit(text []byte) error {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		out.WriteString(p.prefix)
		out.Write(bytes.TrimRight(line, "\r\n"))
		out.WriteByte('\n')
	}
	p.to.mutex.Lock()
	defer p.to.mutex.Unlock()
	_, err := p.to.w.Write(out.Bytes())
	return err
}
