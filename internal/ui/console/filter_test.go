package console

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// A hostile node sends bytes that would reach beyond the window, or that would bring text of its own
// choice back as keys.
func TestWhatReachesTheTerminal(t *testing.T) {
	for _, c := range []struct{ name, sent, want string }{
		{"text", "C:\\> äöü €\r\n", "C:\\> äöü €\r\n"},
		{"drawing", "\x1b[2J\x1b[1;1H\x1b[38;2;1;2;3mred\x1b[m\x1b[K\x1b7\x1b8\x1b(0q\x1b(B", ""},
		{"cursor and mouse modes", "\x1b[?25l\x1b[?1049h\x1b[?1006;1000h\x1b[4h\x1b[5 q\x1b[!p", ""},
		{"position query", "\x1b[6n\x1b[c", ""},
		{"clipboard", "a\x1b]52;c;c2VjcmV0\ab\x1b]52;c;?\x1b\\c", "abc"},
		{"notification, folder, link, colours, iTerm's files", "\x1b]9;x\a\x1b]7;file:///\a\x1b]8;;http://x\x1b\\x" +
			"\x1b]10;?\a\x1b]4;1;red\a\x1b]1337;File=:AAAA\a", "x"},
		{"title", "\x1b]2;new\a", "\x1b[22;0t\x1b]0;new\a"},
		{"title with controls", "\x1b]0;a\rb\u202ec\u009d\x1b\\", "\x1b[22;0t\x1b]0;abc\a"},
		{"long title", "\x1b]0;" + strings.Repeat("x", 300) + "\a",
			"\x1b[22;0t\x1b]0;" + strings.Repeat("x", longestTitle) + "\a"},
		{"too long title", "\x1b]0;" + strings.Repeat("x", 1<<20) + "\aend", "end"},
		{"title report, window size", "\x1b[21t\x1b[20t\x1b[8;500;500t\x1b[2t", ""[:0] + dropped},
		{"printer", "\x1b[5itext\x1b[4i", "text"},
		{"device control, kitty's files, privacy messages",
			"\x1bP$qm\x1b\\\x1b_Gt=f;L2V0Yw==\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\e", "e"},
		{"controls of eight bits", "\u009d52;c;eA==\u009cx\u009b5i", "52;c;eA==x5i"},
		{"bytes that are no UTF-8", "\x9d52\x9b\xc3x\xff", "\uFFFD52\uFFFD\uFFFDx\uFFFD"},
		{"answerback, cancel, null", "\x05\x18\x1a\x00x\x7f", "x"},
		{"keys in Windows' own form, keyboard lock", "\x1b[?9001hx\x1b[2h\x1b[>4;2m\x1b[>1u", "x"},
		{"a mode among others", "\x1b[?9001;25;99l", "\x1b[?25l"},
		{"repetition", "x\x1b[99999999b", "x"},
		{"another encoding", "\x1b%@x", "x"},
		{"an endless sequence", "\x1b[" + strings.Repeat("1;", 1000) + "mx", "x"},
		{"a sequence in a sequence", "\x1b]52;c;\x1b[5mx", "\x1b[5mx"},
		{"a cancelled sequence", "\x1b]52;c;\x18x", "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.want
			switch want {
			case "":
				want = c.sent
			case dropped:
				want = ""
			}
			if diff := cmp.Diff(want, string((&filter{}).pass([]byte(c.sent)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const dropped = "-"

// A program that ended in the middle of its work leaves the screen usable.
func TestModesArePutBack(t *testing.T) {
	for sent, want := range map[string]string{
		"nothing":                           "",
		"\x1b[?25l\x1b[?25h":                "",
		"\x1b[?1049h\x1b[?25l":              "\x1b[?25h\x1b[?1049l",
		"\x1b[?1000h\x1b[?2004h\x1b[31mred": "\x1b[?2004l\x1b[?1000l\x1b[0m",
		"\x1b=\x1b[4h\x1b[2;5r\x1b(0":       "\x1b>\x1b[4l\x1b7\x1b[r\x1b8\x0f\x1b(B",
		"\x1b[3 q\x1b]0;x\a":                "\x1b[0 q\x1b[23;0t",
		"\x0e":                              "\x0f\x1b(B",
	} {
		f := &filter{}
		f.pass([]byte(sent))
		if diff := cmp.Diff(want, string(f.modes.undo())); diff != "" {
			t.Errorf("%q: %s", sent, diff)
		}
	}
}

// harmful matches all sequences but the known ones.
var (
	known = regexp.MustCompile("\x1b(\\[[0-9;:]*[" + regexp.QuoteMeta(plainControls) + "]|\\[\\?[0-9;:]*[JKhl]|\\[4[hl]|" +
		"\\[[+-]?[0-9]+ q|\\[!p|\\[22;0t|\\]0;[^\x00-\x1f\x7f]*\a|[78=>DEHM]|\\([0AB]|#8)")
	controls = regexp.MustCompile("[\x00-\x06\x10-\x1f\x7f\u0080-\u009f]")
)

func FuzzFilter(f *testing.F) {
	for _, seed := range []string{"text", "\x1b]52;c;eA==\a", "\x1b[?25;9001h", "\x1bP$q\x1b\\", "\xc2\x9d", "\x1b[5 q",
		"\x1b]0;ä\x1b\\", "\xe2\x82", "\x1b(0\x1b[4h\x1b[1;2r"} {
		f.Add([]byte(seed), 1)
	}
	f.Fuzz(func(t *testing.T, sent []byte, at int) {
		whole := &filter{}
		out := bytes.Clone(whole.pass(sent))
		if left := known.ReplaceAll(out, nil); controls.Match(left) {
			t.Errorf("%q passed: %q", sent, left)
		}
		if !utf8.Valid(out) {
			t.Errorf("not UTF-8: %q", out)
		}
		if len(whole.kept) > longestCommand || len(whole.modes.changed) > 32 {
			t.Errorf("%d bytes and %d modes are kept", len(whole.kept), len(whole.modes.changed))
		}
		at = max(0, min(at, len(sent)))
		parts := &filter{}
		first := bytes.Clone(parts.pass(sent[:at]))
		if again := append(first, parts.pass(sent[at:])...); !bytes.Equal(again, out) {
			t.Errorf("in parts: %q, whole: %q", again, out)
		}
	})
}
