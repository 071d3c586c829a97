package ui

import (
	"bytes"
	"io"
	"sync"
)

// LineWriter writes to a stream that several nodes share. It writes whole lines.
type LineWriter struct {
	mutex sync.Mutex
	w     io.Writer
}

// NewLineWriter returns a LineWriter to w.
func NewLineWriter(w io.Writer) *LineWriter { return &LineWriter{w: w} }

// maxLine is the maximum length in bytes of an incomplete line that is held back.
const maxLine = 64 << 10

// Prefixed returns a writer for one node. It writes each line as a whole, after the prefix.
func (l *LineWriter) Prefixed(prefix string) io.WriteCloser {
	return &prefixWriter{to: l, prefix: prefix}
}

type prefixWriter struct {
	to      *LineWriter
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

// Close writes the last line if it has no line end.
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
