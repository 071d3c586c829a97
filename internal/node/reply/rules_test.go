package reply

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swdt-dev/swdt/internal/wire/winpath"
)

// TestRulesAtTheirBounds tries each kind of rule with the last values that it accepts and the first that it refuses.
func TestRulesAtTheirBounds(t *testing.T) {
	for name, test := range map[string]struct {
		rule     rule
		valid    []any
		problems []any
	}{
		"text": {text(4), []any{"", "abcd", "\x00\n"}, []any{"abcde"}},
		"line": {line(4), []any{"", "abcd", " ~", "\u00a0", "\u2027", "\u202a"},
			[]any{"abcde", "\x1f", "\x7f", "\u0080", "\u009f", "\u2028", "\u2029"}},
		"word": {word, []any{"", "az AZ", "09._-", strings.Repeat("x", 64)},
			[]any{"`", "{", "@", "[", "/", ":", "\x00", strings.Repeat("x", 65)}},
		"token": {token, []any{"a", ".a.", "a-1_b.c"}, []any{"", ".", "...", "a b", "a/b"}},
		"sha256": {sha256, []any{strings.Repeat("09af", 16)}, []any{"", strings.Repeat("0", 63), strings.Repeat("0", 65),
			strings.Repeat("/", 64), strings.Repeat(":", 64), strings.Repeat("`", 64), strings.Repeat("g", 64)}},
		"path": {path, []any{`a:\`, `Z:\`, `z:\a b\c`, `A:\...`, `C:\` + strings.Repeat("x", winpath.Longest-3)},
			[]any{"", `C:`, `C:/`, `C:a`, `Cx\`, "`:\\", `{:\`, `@:\`, `[:\`, `C:\a\`, `C:\a\\b`, `C:\.`, `C:\a\..`,
				`C:\a/b`, `C:\a:b`, `C:\a<`, `C:\a>`, `C:\a"`, `C:\a|`, `C:\a?`, `C:\a*`, "C:\\a\n",
				`C:\` + strings.Repeat("x", winpath.Longest-2)}},
		"optional": {optional(token), []any{"", "a"}, []any{"a b"}},
		"between": {between(-2, 3), []any{int64(-2), int64(3), int32(-2), int32(3), uint32(3), uint64(3)},
			[]any{int64(-3), int64(4), int32(-3), int32(4), uint32(4), uint64(4), uint64(1 << 63), true}},
		"atMost": {atMost(2), []any{[]byte{}, []byte("ab")}, []any{[]byte("abc")}},
	} {
		for _, value := range test.valid {
			if problem := test.rule.value(protoreflect.ValueOf(value)); problem != "" {
				t.Errorf("%s: %.20q %s", name, value, problem)
			}
		}
		for _, value := range test.problems {
			if test.rule.value(protoreflect.ValueOf(value)) == "" {
				t.Errorf("%s: %.20q is valid", name, value)
			}
		}
	}
}

func TestQuotedTextIsShort(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"a\n", `"a\n"`},
		{strings.Repeat("x", 120), `"` + strings.Repeat("x", 120) + `"`},
		{strings.Repeat("x", 121), `"` + strings.Repeat("x", 120) + `"…`},
		{strings.Repeat("x", 119) + "é", `"` + strings.Repeat("x", 119) + `"…`},
		{strings.Repeat("\x80", 121), `""…`},
	} {
		if got := quote(test.text); got != test.want {
			t.Errorf("%q was quoted as %s, want %s", test.text, got, test.want)
		}
	}
}
