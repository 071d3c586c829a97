package livetable

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/swdt-dev/swdt/internal/ui"
)

// View is the order and the filter that a person has chosen with keys. A table without keys
// has a nil View.
type View struct {
	mutex   sync.Mutex
	columns []string // the columns by which rows can be sorted
	sort    string
	reverse bool
	filter  string
	typing  bool // the filter is being typed
	help    bool
	ended   bool   // keys are no longer read
	partial []byte // the first bytes of a character whose other bytes have not arrived
}

// NewView returns the view of a table with these columns, sorted by one of them.
func NewView(columns []string, sort string) *View {
	return &View{columns: columns, sort: sort}
}

// Current is the order and filter of a View at one moment.
type Current struct {
	Choice
	Footer []string
}

// Current returns the current order and filter of v. For a nil View, it returns the given order and
// no filter.
func (v *View) Current(sort string) Current {
	if v == nil {
		return Current{Choice: Choice{Sort: sort}}
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return Current{Choice{Sort: v.sort, Reverse: v.reverse, Filter: v.filter}, v.footer()}
}

// End removes the footer. It is called when keys are no longer read.
func (v *View) End() {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.ended = true
}

// Mark returns a header with an arrow at the column by which rows are sorted. titles maps
// the name of a column to its title in the header, if the two differ.
func (v *View) Mark(header []string, titles map[string]string) []string {
	if v == nil {
		return header
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	title, ok := titles[v.sort]
	if !ok {
		title = strings.ToUpper(v.sort)
	}
	marked := slices.Clone(header)
	if i := slices.Index(marked, title); i >= 0 {
		marked[i] += map[bool]string{false: "↓", true: "↑"}[v.reverse]
	}
	return marked
}

// footer returns the lines below the table.
func (v *View) footer() []string {
	switch {
	case v.ended:
		return nil
	case v.typing:
		return []string{"/" + v.filter + "_  Enter keep, Esc clear"}
	case v.help:
		return []string{
			"s  sort by the next column: " + ui.Alternatives(v.columns), "S  reverse the order",
			"/  show rows with a text; Esc shows all again",
			"q  quit, as Ctrl-C does", "?  hide this",
		}
	case v.filter != "":
		return []string{"/" + v.filter + "  Esc clear, s sort, S reverse, q quit, ? keys"}
	}
	return []string{"s sort, S reverse, / filter, q quit, ? keys"}
}

const (
	keyCtrlC     = 0x03
	keyCtrlD     = 0x04
	keyBackspace = 0x08
	keyEscape    = 0x1b
	keyDelete    = 0x7f
)

// longestFilter is the maximum length of a typed filter, in bytes.
const longestFilter = 80

// Press handles the bytes that a read of the terminal returned, and reports whether the person
// quits. A key that sends an escape sequence, such as an arrow, does nothing; the Escape key itself
// is recognised if its byte is the last one of the read.
func (v *View) Press(input []byte) (quit bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	input = append(v.partial, input...)
	v.partial = nil
	for len(input) > 0 {
		if !utf8.FullRune(input) {
			v.partial = slices.Clone(input)
			return false
		}
		if n := sequence(input); n > 1 {
			input = input[n:]
			continue
		}
		key, n := utf8.DecodeRune(input)
		input = input[n:]
		if v.key(key) {
			return true
		}
	}
	return false
}

// sequence returns the length of the escape sequence at the beginning of input; 0 if there
// is none, 1 for the Escape key alone.
func sequence(input []byte) int {
	switch {
	case input[0] != keyEscape:
		return 0
	case len(input) == 1 || input[1] != '[' && input[1] != 'O':
		return 1
	}
	for i, b := range input[2:] {
		if b >= 0x40 && b <= 0x7e {
			return i + 3
		}
	}
	return len(input)
}

func (v *View) key(key rune) (quit bool) {
	if key == keyCtrlC {
		return true
	}
	if v.typing {
		v.typed(key)
		return false
	}
	switch key {
	case 'q', keyCtrlD:
		return true
	case 's':
		v.sort, v.reverse = v.columns[(slices.Index(v.columns, v.sort)+1)%len(v.columns)], false
	case 'S':
		v.reverse = !v.reverse
	case '/':
		v.typing, v.help = true, false
	case '?':
		v.help = !v.help
	case keyEscape:
		v.filter, v.help = "", false
	}
	return false
}

// typed handles a key while the person types the filter.
func (v *View) typed(key rune) {
	switch {
	case key == '\r' || key == '\n':
		v.typing = false
	case key == keyEscape:
		v.typing, v.filter = false, ""
	case key == keyBackspace || key == keyDelete:
		_, n := utf8.DecodeLastRuneInString(v.filter)
		v.filter = v.filter[:len(v.filter)-n]
	case unicode.IsPrint(key) && key != utf8.RuneError && len(v.filter) < longestFilter:
		v.filter += string(key)
	}
}
