package console

import (
	"io"
	"sync"
	"unicode/utf8"
)

// screen is the writer of a node's output.
type screen struct {
	to     io.Writer
	mu     sync.Mutex
	filter *filter
	closed bool
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, io.ErrClosedPipe
	}
	if _, err := s.to.Write(s.filter.pass(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// close puts the screen's modes back; later writes fail.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	_, _ = s.to.Write(s.filter.modes.undo())
}

// state is the position of a filter in its input.
type state int

const (
	ground  state = iota
	escaped       // after ESC
	control       // after ESC [
	command       // after ESC ], which begins a command of the operating system (OSC)
	text          // in a string that is dropped: DCS, SOS, PM, APC
	ending        // after ESC in a command or string
)

// Bounds of what a filter keeps, in bytes.
const (
	longestControl = 128
	longestCommand = 1024
)

// filter passes on text, and those control sequences that draw. All others are dropped: see
// sequence.go. It keeps an incomplete sequence until its end, so its output always consists of whole
// sequences.
type filter struct {
	state state
	kept  []byte // the incomplete sequence or character
	long  bool   // the sequence is too long and will be dropped
	title bool   // in state ending: the sequence is a command, which may be a title
	modes modes
	out   []byte
}

// pass returns the part of the output that may reach the terminal. The result is valid until the
// next call.
func (f *filter) pass(p []byte) []byte {
	f.out = f.out[:0]
	for _, b := range p {
		f.next(b)
	}
	return f.out
}

const (
	bell = 0x07
	esc  = 0x1b
	can  = 0x18
	sub  = 0x1a
)

func (f *filter) next(b byte) {
	if (b == can || b == sub) && f.state != ground {
		f.begin(ground)
		return
	}
	switch f.state {
	case ground:
		f.plain(b)
	case escaped:
		f.afterEscape(b)
	case control:
		f.inControl(b)
	case command:
		f.inCommand(b)
	case text:
		if b == esc {
			f.state, f.title = ending, false
		}
	case ending:
		if b == '\\' {
			if f.title {
				f.endCommand()
			}
			f.begin(ground)
			return
		}
		f.begin(escaped)
		f.next(b)
	}
}

func (f *filter) begin(s state) {
	f.state, f.kept, f.long = s, f.kept[:0], false
}

// plain handles text, and control characters outside of sequences.
func (f *filter) plain(b byte) {
	if len(f.kept) > 0 && (b < 0x80 || b >= 0xc0) { // the character before is incomplete
		f.out = append(f.out, string(utf8.RuneError)...)
		f.kept = f.kept[:0]
	}
	switch {
	case b == esc:
		f.begin(escaped)
	case b < ' ':
		const drawing = 1<<bell | 1<<'\b' | 1<<'\t' | 1<<'\n' | 1<<'\v' | 1<<'\f' | 1<<'\r' | 1<<shiftOut | 1<<shiftIn
		if drawing>>b&1 == 1 {
			f.modes.charset = f.modes.charset || b == shiftOut
			f.out = append(f.out, b)
		}
	case b < 0x7f:
		f.out = append(f.out, b)
	case b == 0x7f:
	default:
		f.character(b)
	}
}

// character collects the bytes of a character beyond ASCII. The characters U+0080 to U+009F are
// control sequences for some terminals, so they are dropped.
func (f *filter) character(b byte) {
	f.kept = append(f.kept, b)
	if !utf8.FullRune(f.kept) {
		return
	}
	r, size := utf8.DecodeRune(f.kept)
	if r >= 0xa0 {
		f.out = utf8.AppendRune(f.out, r)
	}
	rest := append([]byte(nil), f.kept[size:]...)
	f.kept = f.kept[:0]
	for _, b := range rest { // an invalid sequence is one byte long, the others count anew
		f.character(b)
	}
}

func (f *filter) afterEscape(b byte) {
	switch {
	case len(f.kept) == 0 && b == '[':
		f.begin(control)
	case len(f.kept) == 0 && b == ']':
		f.begin(command)
	case len(f.kept) == 0 && (b == 'P' || b == 'X' || b == '^' || b == '_'):
		f.begin(text)
	case b == esc:
		f.begin(escaped)
	case b >= ' ' && b < '0' && len(f.kept) < longestControl:
		f.kept = append(f.kept, b)
	default:
		f.kept = append(f.kept, b)
		if allowedEscape(f.kept) {
			f.modes.escape(f.kept)
			f.out = append(append(f.out, esc), f.kept...)
		}
		f.begin(ground)
	}
}

func (f *filter) inControl(b byte) {
	switch {
	case b == esc:
		f.begin(escaped)
	case b >= ' ' && b < '@':
		if f.long = f.long || len(f.kept) >= longestControl; !f.long {
			f.kept = append(f.kept, b)
		}
	default:
		if !f.long {
			f.kept = append(f.kept, b)
			f.out = f.modes.control(f.out, f.kept)
		}
		f.begin(ground)
	}
}

func (f *filter) inCommand(b byte) {
	switch {
	case b == bell:
		f.endCommand()
		f.begin(ground)
	case b == esc:
		f.state, f.title = ending, true
	default:
		if f.long = f.long || len(f.kept) >= longestCommand; !f.long {
			f.kept = append(f.kept, b)
		}
	}
}

func (f *filter) endCommand() {
	if !f.long {
		f.out = f.modes.command(f.out, f.kept)
	}
}
